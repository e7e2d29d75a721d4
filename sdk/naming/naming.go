// Package naming derives the names of generated objects, and reads the host names of Services.
//
// The documented format is "<base>-<5 characters>". The five characters are not random: they are
// derived from the purpose of the object (its owner's UID and an ordinal, or a hash of its content), so that
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
	// maxLength is the maximum length of generated names, which are also used as label values.
	maxLength = validation.LabelValueMaxLength
	// alphabet has no vowels and no characters that look alike, as in names that Kubernetes generates.
	alphabet = "bcdfghjklmnpqrstvwxz2456789"
)

// Suffix derives the five characters of a generated name from what identifies the object, most general
// part first: the owner's UID, then what distinguishes this object from its siblings.
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

// WithSuffix joins base and suffix with a dash. A base that would make the name longer than 63
// characters is truncated.
func WithSuffix(base, suffix string) string {
	return Limit(base+"-", suffix)
}

// OfTemplate returns the name of an object that is named after its template instead of its Machine. It derives from the Machine: see
// IsOfTemplate.
func OfTemplate(template, machine string) string { return Limit(template+"-", templateSuffix(machine)) }

// IsOfTemplate reports whether a name is that of a Machine's object by OfTemplate, of any template.
func IsOfTemplate(name, machine string) bool {
	return strings.HasSuffix(name, "-"+templateSuffix(machine))
}

// templateSuffix is longer than other suffixes: thousands of objects may have the name of one template.
func templateSuffix(machine string) string {
	return Suffix("template", machine) + Suffix(machine, "template")
}

// Limit joins base and suffix, and truncates the base so that the result has at most 63 characters.
func Limit(base, suffix string) string {
	if room := maxLength - len(suffix); len(base) > room {
		base = base[:room]
	}
	return base + suffix
}

// LabelValue returns a label value for a name: the name itself if it is valid, otherwise
// "hash_<base64 of its FNV-32a hash>_z".
func LabelValue(name string) string {
	if len(validation.IsValidLabelValue(name)) == 0 {
		return name
	}
	h := fnv.New32a()
	_, _ = h.Write([]byte(name)) // a hash never fails to write
	return "hash_" + base64.RawURLEncoding.EncodeToString(h.Sum(nil)) + "_z"
}
