package ignition

import (
	"fmt"
	"path"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// InvalidError is returned for a spec that cannot be rendered. Only a change of the spec, or of a Secret that it refers to, can
// fix it.
type InvalidError struct {
	// Fields are the errors, without values: they may come from Secrets.
	Fields field.ErrorList
}

// shown is the maximum number of fields in a message, which ends up in a condition.
const shown = 5

// Error implements error. It has one line.
func (e *InvalidError) Error() string {
	var out []string
	for i, err := range e.Fields {
		if i == shown {
			out = append(out, fmt.Sprintf("%d more", len(e.Fields)-shown))
			break
		}
		out = append(out, oneLine(err.Field+": "+err.Detail))
	}
	return strings.Join(out, "; ")
}

// maxMessage is the maximum length of a message about a field, in bytes.
const maxMessage = 400

// oneLine returns a text without line breaks and control characters, and cut if it is long: errors of libraries quote values.
func oneLine(text string) string {
	fields := strings.FieldsFunc(text, func(r rune) bool { return unicode.IsSpace(r) || isControl(r) })
	text = strings.Join(fields, " ")
	if len(text) > maxMessage {
		text = text[:maxMessage] + "..."
	}
	return strings.ToValidUTF8(text, "\ufffd")
}

// invalid returns the error for a field, without its value.
func invalid(at *field.Path, format string, args ...any) *field.Error {
	return field.Invalid(at, field.OmitValueType{}, fmt.Sprintf(format, args...))
}

// maxLine is the maximum length of values that are part of a line, in bytes. It is longer than any SSH key.
const maxLine = 16 << 10

// checkLine returns an error unless a value is text of one line.
func checkLine(value string, at *field.Path) field.ErrorList {
	switch {
	case len(value) > maxLine:
		return field.ErrorList{invalid(at, "must be at most %d bytes", maxLine)}
	case !utf8.ValidString(value):
		return field.ErrorList{invalid(at, "must be valid UTF-8")}
	case strings.ContainsFunc(value, isControl):
		return field.ErrorList{invalid(at, "must be one line without control characters")}
	}
	return nil
}

// isControl reports whether a character may end a line or is invisible.
func isControl(r rune) bool { return unicode.IsControl(r) || r == '\u2028' || r == '\u2029' }

// accountPattern is what all distributions accept as the name of a user or group. The length is that of Linux.
var accountPattern = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_.-]{0,31}$`)

// checkAccount returns an error unless a value is the name of a user or group.
func checkAccount(name string, at *field.Path) field.ErrorList {
	if accountPattern.MatchString(name) {
		return nil
	}
	return field.ErrorList{invalid(at, "must be the name of an account: a letter or underscore, followed by at most 31 letters, digits, "+
		"underscores, dots and hyphens")}
}

// maxPath is Linux's PATH_MAX without the final null byte.
const maxPath = 4095

// cleanPath returns an absolute path without redundant elements.
func cleanPath(value string, at *field.Path) (string, field.ErrorList) {
	if errs := checkLine(value, at); len(errs) > 0 {
		return "", errs
	}
	if !path.IsAbs(value) || len(value) > maxPath {
		return "", field.ErrorList{invalid(at, "must be an absolute path of at most %d bytes", maxPath)}
	}
	return path.Clean(value), nil
}
