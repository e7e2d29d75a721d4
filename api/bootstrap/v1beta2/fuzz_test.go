package v1beta2

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// A token is written as it is read, and its secret half is in no error and in no text that is made of it.
func FuzzBootstrapToken(f *testing.F) {
	for _, token := range []string{"abcdef.0123456789abcdef", "", ".", "abcdef.0123456789abcdef\n", "ABCDEF.0123456789abcdef", "abcdef.0123456789abcdé", "abcdef0123456789abcdef", "\xff", "abcdef.0123456789abcdef.x", "null"} {
		f.Add(token)
	}
	f.Fuzz(func(t *testing.T, token string) {
		parsed, err := NewBootstrapTokenString(token)
		if err != nil {
			if len(token) > 12 && strings.Contains(err.Error(), token) {
				t.Errorf("the error quotes the token: %v", err)
			}
			return
		}
		if parsed.Encode() != token || len(parsed.ID) != 6 || len(parsed.Secret) != 16 {
			t.Errorf("%q is written as %q", token, parsed.Encode())
		}
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
			if text := fmt.Sprintf(verb, *parsed); strings.Contains(text, parsed.Secret) || strings.Contains(text, fmt.Sprintf("%x", parsed.Secret)) {
				t.Errorf("%s shows %s", verb, text)
			}
		}
		raw, err := json.Marshal(parsed)
		var again BootstrapTokenString
		if err == nil {
			err = json.Unmarshal(raw, &again)
		}
		if err != nil || again != *parsed {
			t.Errorf("%q is %q, read as %q: %v", token, raw, again.Encode(), err)
		}
	})
}
