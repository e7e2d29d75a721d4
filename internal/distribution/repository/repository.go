package repository

import (
	"context"
	"errors"
)

// ErrNotFound is matched by errors about a version or file that the repository does not have, as opposed to one that
// could not be reached.
var ErrNotFound = errors.New("not found")

// Names of files every repository may have.
const (
	// MetadataFile maps release series to contracts.
	MetadataFile = "metadata.yaml"
	// Latest stands in URLs for the newest usable version.
	Latest = "latest"
)

// Repository is one place where one provider's releases are published.
type Repository interface {
	// Versions returns the published versions, unsorted, all of them semantic versions. A kind of repository that
	// cannot list returns the one version it knows.
	Versions(ctx context.Context) ([]string, error)
	// File returns a file's contents, or an error matching ErrNotFound.
	File(ctx context.Context, version, name string) ([]byte, error)
	// Files returns the names of a version's files, or an error matching errors.ErrUnsupported.
	Files(ctx context.Context, version string) ([]string, error)
}

// location is what a provider's URL says besides the kind of repository.
type location struct {
	// version is a semantic version or Latest.
	version string
	// file is the components file.
	file string
	// folder is what users are shown as the place of the repository, ending in a slash.
	folder string
}
