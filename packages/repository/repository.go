package repository

import (
	"context"
	"errors"
	"fmt"
)

// ErrNotFound is matched by errors about a version or file that does not exist, as opposed to an unreachable repository.
var ErrNotFound = errors.New("not found")

// TokenError is the error of a request for which GitHub demands a token, or does not accept the given one.
type TokenError struct {
	// Token is where the token is.
	Token string
}

// Error implements error.
func (e *TokenError) Error() string {
	return fmt.Sprintf("check that %s is set, is valid, and allows reading the repository", e.Token)
}

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
