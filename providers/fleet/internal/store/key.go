package store

import (
	"crypto/rand"
	"fmt"
	"io/fs"
	"strings"
	"time"
)

const (
	// maxKey is the largest length of a key, in bytes. S3 limits keys to 1024, with the prefix of the store.
	maxKey = 512
	// maxLifetime is how long a signed URL can be valid at most, by S3's rules.
	maxLifetime = 7 * 24 * time.Hour
	// checkPrefix is how the keys of the objects begin that Check writes. They are invalid as keys of others.
	checkPrefix = ".check-"
)

// ValidKey reports whether an object can have a key: a relative path of at most 512 letters, digits, and "-_.", whose parts do not begin
// with a dot, and are not longer than 255 bytes, as files are.
func ValidKey(key string) bool {
	if len(key) > maxKey || !fs.ValidPath(key) {
		return false
	}
	for part := range strings.SplitSeq(key, "/") {
		if strings.HasPrefix(part, ".") || len(part) > 255 {
			return false
		}
	}
	return !strings.ContainsFunc(key, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("-_./", r)
	})
}

// checkKey returns an error for keys that are invalid.
func checkKey(key string) error {
	if !ValidKey(key) {
		return fmt.Errorf("invalid key %q of an object", key)
	}
	return nil
}

// checkLifetime returns an error for lifetimes that are invalid.
func checkLifetime(lifetime time.Duration) error {
	if lifetime < time.Second || lifetime > maxLifetime {
		return fmt.Errorf("invalid lifetime %s of a URL: must be from 1 second to 7 days", lifetime)
	}
	return nil
}

// newCheckKey returns the key of an object that Check writes.
func newCheckKey() string {
	return checkPrefix + strings.ToLower(rand.Text())
}
