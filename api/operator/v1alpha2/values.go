package v1alpha2

import (
	"encoding/json"
	"fmt"
	"strconv"
	"time"
)

// Argument is the value of an argument. A number, such as 12, is the same as a string.
//
// +kubebuilder:validation:Type=""
// +kubebuilder:validation:XIntOrString
type Argument string

// UnmarshalJSON accepts numbers, too.
func (a *Argument) UnmarshalJSON(raw []byte) error {
	*a = Argument(textOf(raw))
	return nil
}

// Duration is a duration such as 11m, or a number of seconds.
//
// +kubebuilder:validation:Type=""
// +kubebuilder:validation:XIntOrString
type Duration string

// UnmarshalJSON accepts numbers, too.
func (d *Duration) UnmarshalJSON(raw []byte) error {
	*d = Duration(textOf(raw))
	return nil
}

// Parse returns the duration; zero if none is set.
func (d Duration) Parse() (time.Duration, error) {
	text := string(d)
	if text == "" {
		return 0, nil
	}
	if _, err := strconv.ParseInt(text, 10, 64); err == nil {
		text += "s"
	}
	out, err := time.ParseDuration(text)
	if err != nil {
		return 0, fmt.Errorf("%q must be a duration, such as 11m, or a number of seconds", string(d))
	}
	return out, nil
}

// textOf returns the text of a JSON string, and other values as they are: the API server, which names the field, rejects those that are not
// numbers.
func textOf(raw []byte) string {
	text := ""
	if json.Unmarshal(raw, &text) == nil {
		return text
	}
	return string(raw)
}
