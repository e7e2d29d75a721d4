// Package naming derives the names of generated objects.
//
// The documented format is "<base>-<5 characters>". The five characters are not drawn at random: they are
// derived from what the object is for (its owner's UID and an ordinal, or a hash of its content), so that
// creating the same object twice, after a crash or on a stale cache, collides instead of duplicating.
package naming

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"hash/fnv"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

const (
	suffixLength = 5
	// maxLength is the longest generated name: names end up in label values.
	maxLength = validation.LabelValueMaxLength
	// alphabet leaves out vowels and characters that look alike, as Kubernetes' own generated names do.
	alphabet = "bcdfghjklmnpqrstvwxz2456789"
)

// Suffix derives the five characters of a generated name from what identifies the object, most general
// part first: the owner's UID, then what tells this object from its siblings.
func Suffix(parts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	n := binary.BigEndian.Uint64(sum[:8])
	out := make([]byte, suffixLength)
	for i := range out {
		out[i] = alphabet[n%uint64(len(alphabet))]
		n /= uint64(len(alphabet))
	}
	return string(out)
}

// WithSuffix is base and suffix joined by a dash. A base that would make the name longer than 63
// characters is cut.
func WithSuffix(base, suffix string) string {
	return Limit(base+"-", suffix)
}

// Limit joins base and suffix, cutting the base so that the whole is at most 63 characters.
func Limit(base, suffix string) string {
	if room := maxLength - len(suffix); len(base) > room {
		base = base[:room]
	}
	return base + suffix
}

// LabelValue is a name as a label value: itself when it is a valid one, otherwise
// "hash_<base64 of its FNV-32a hash>_z".
func LabelValue(name string) string {
	if len(validation.IsValidLabelValue(name)) == 0 {
		return name
	}
	h := fnv.New32a()
	_, _ = h.Write([]byte(name)) // a hash never fails to write
	return "hash_" + base64.RawURLEncoding.EncodeToString(h.Sum(nil)) + "_z"
}
