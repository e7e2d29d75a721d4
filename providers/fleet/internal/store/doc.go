// Package store keeps the archives of backups: in a bucket of an S3-compatible service, or in a directory. Both implementations pass the
// same tests.
//
// A Store is plain: objects under keys, which appear complete or not at all. It uses at most 9 MiB of memory per upload and a few buffers
// per download, and every wait for a service ends with an error once nothing moves for a while. Errors are typed by what follows from
// them, see ErrCredentials and the others; none has a secret in it.
//
// What archives contain, which ones are kept, and reading Secrets do not belong here.
package store

import (
	"context"
	"errors"
	"io"
	"time"
)

// Store keeps objects under keys. Keys are paths with slashes, see ValidKey. All methods may be called at the same time, and end when their
// context does.
type Store interface {
	// Put stores what content has until io.EOF, and replaces what the key has. Others see it once Put returns without an error; if there is an
	// error, also one of content, nothing is left behind, unless the process is killed: see Clean.
	Put(ctx context.Context, key string, content io.Reader) error
	// Get returns the content of an object, or ErrNotFound. The caller closes it. ctx must live until then.
	Get(ctx context.Context, key string) (io.ReadCloser, error)
	// List calls each for every object whose key starts with the prefix, which need not end with a slash, in no particular order. Objects
	// whose keys are invalid are left out: this package has not written them. An error of each ends the list, and is returned.
	List(ctx context.Context, prefix string, each func(Entry) error) error
	// Delete deletes an object. If there is none, it does nothing.
	Delete(ctx context.Context, key string) error
	// URL returns an address where everybody can read an object with HTTP GET until the lifetime ends, without credentials: the address is a
	// secret. The lifetime is from 1 second to 7 days. It does not check that the object exists. Stores without addresses return ErrNoURL.
	URL(ctx context.Context, key string, lifetime time.Duration) (string, error)
	// Check finds out whether objects can be listed, written, read and deleted, by doing it.
	Check(ctx context.Context) error
	// Clean removes what uploads that began before a time have left behind when their process was killed. The time must be older than any
	// upload that may still run.
	Clean(ctx context.Context, before time.Time) error
}

// Entry is an object in a list.
type Entry struct {
	Key string
	// Size is in bytes.
	Size int64
	// Modified is when it was written, by the clock of the store.
	Modified time.Time
}

// Errors by what follows from them. Other errors, such as those of contexts and of the content to store, are wrapped as they are.
var (
	// ErrCredentials is returned if credentials are wrong or expired, or permit too little: correct them.
	ErrCredentials = errors.New("the store rejects the credentials")
	// ErrNoBucket is returned if the bucket or the directory does not exist: create it, or correct its name.
	ErrNoBucket = errors.New("the bucket or directory does not exist")
	// ErrFull is returned if there is no space, or a quota is exceeded: delete objects, or enlarge the store.
	ErrFull = errors.New("the store is full")
	// ErrUnreachable is returned if the store does not respond, or cannot at present: retry later.
	ErrUnreachable = errors.New("the store is unreachable")
	// ErrNotFound is returned if there is no object under a key.
	ErrNotFound = errors.New("the object does not exist")
	// ErrNoURL is returned by stores whose objects have no addresses.
	ErrNoURL = errors.New("objects of a directory have no URL")
)
