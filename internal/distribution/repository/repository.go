package repository

import (
	"context"
	"errors"
)

// ErrNotFound is matched by errors about a version or file that does not exist, as opposed to an unreachable repository.
var ErrNotFound = errors.New("not found")

// ErrToken is matched by errors about a token that is missing, or that GitHub does not accept.
var ErrToken = errors.New("check that GITHUB_TOKEN is set, is valid, and allows reading the repository")

// Names of files that every repository may have.
const (
	// MetadataFile maps release series to contracts.
	MetadataFile = "metadata.yaml"
	// Latest in URLs means the latest usable version.
	Latest = "latest"
)

// Repository is where a provider's releases are published.
type Repository interface {
	// Versions returns the published semantic versions, unsorted. A repository that cannot list versions returns the one
	// in its URL.
	Versions(ctx context.Context) ([]string, error)
	// File returns a file's contents, or an error matching ErrNotFound.
	File(ctx context.Context, version, name string) ([]byte, error)
	// Files returns the names of a version's files, or an error matching errors.ErrUnsupported.
	Files(ctx context.Context, version string) ([]string, error)
}

// location is the parsed URL of a provider, without the kind of repository.
type location struct {
	// version is a semantic version or Latest.
	version string
	// file is the components file.
	file string
	// folder is the location of the repository for messages, ending in a slash.
	folder string
}
