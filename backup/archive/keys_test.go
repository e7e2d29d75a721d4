package archive

import (
	"strings"
	"testing"

	"filippo.io/age"
	"github.com/google/go-cmp/cmp"
)

func TestParseRecipients(t *testing.T) {
	one, other := identity(t), identity(t)
	hybrid, err := age.GenerateHybridIdentity()
	if err != nil {
		t.Fatal(err)
	}
	r1, r2, h := one.Recipient().String(), other.Recipient().String(), hybrid.Recipient().String()
	const invalid = "is invalid: must be a recipient of age, such as age1..."
	const secret = "is a secret key: specify its recipient, see age-keygen -y, and replace the key if others can read this"
	tests := []struct {
		reason string
		texts  []string
		want   string
	}{
		{"two recipients", []string{r1, r2}, ""},
		{"a post-quantum recipient", []string{h}, ""},
		{"both sorts", []string{r1, h}, "recipients must be all post-quantum (age1pq1...), or none: the others would decide how safe the archive is"},
		{"none", nil, "must have 1 to 20 recipients, not 0"},
		{"too many", make([]string, 21), "must have 1 to 20 recipients, not 21"},
		{"the same twice", []string{r1, r2, r1}, "recipient 3 is the same as recipient 1"},
		{"a typing error", []string{r1, strings.Replace(r2, "age1", "age1q", 1)}, "recipient 2: " + invalid},
		{"an empty one", []string{""}, "recipient 1: " + invalid},
		{"another sort of key", []string{"ssh-ed25519 AAAA"}, "recipient 1: " + invalid},
		{"a secret key", []string{one.String()}, "recipient 1: " + secret},
		{"a secret key in small letters", []string{strings.ToLower(one.String())}, "recipient 1: " + secret},
		{"a post-quantum secret key", []string{hybrid.String()}, "recipient 1: " + secret},
	}
	for _, tc := range tests {
		t.Run(tc.reason, func(t *testing.T) {
			recipients, err := ParseRecipients(tc.texts)
			if err != nil {
				if diff := cmp.Diff(tc.want, err.Error()); diff != "" {
					t.Error(diff)
				}
				return
			}
			if tc.want != "" || len(recipients) != len(tc.texts) {
				t.Errorf("got %d recipients, want %q", len(recipients), tc.want)
			}
		})
	}
}

func TestParseIdentities(t *testing.T) {
	one, other := identity(t), identity(t)
	hybrid, err := age.GenerateHybridIdentity()
	if err != nil {
		t.Fatal(err)
	}
	keygen := "# created: 2026-11-30T12:00:00Z\n# public key: " + one.Recipient().String() + "\n" + one.String() + "\n"
	const invalid = "is invalid: must be a secret key of age, AGE-SECRET-KEY-..."
	flipped := strings.Replace(one.String(), one.String()[30:31], "B", 1)
	tests := []struct {
		reason string
		file   string
		number int
		want   string
	}{
		{"the file of age-keygen", keygen, 1, ""},
		{"two keys, and Windows line ends", one.String() + "\r\n\r\n" + other.String(), 2, ""},
		{"a post-quantum key", hybrid.String(), 1, ""},
		{"an empty file", "", 0, "an identity file must have 1 to 20 secret keys, not 0"},
		{"too many keys", strings.Repeat(keygen, 21), 0, "an identity file must have 1 to 20 secret keys, not 21"},
		{"a large file", strings.Repeat("#\n", 40000), 0, "an identity file must not exceed 65536 bytes"},
		{"a recipient", keygen + one.Recipient().String(), 0, "line 4 of the identity file is a recipient, a public key: a secret key is required, AGE-SECRET-KEY-..."},
		{"a typing error", "\n" + flipped, 0, "line 2 of the identity file " + invalid},
		{"a post-quantum key with a typing error", hybrid.String()[:60], 0, "line 1 of the identity file " + invalid},
		{"a key of SSH", "-----BEGIN OPENSSH PRIVATE KEY-----\n", 0, "line 1 of the identity file " + invalid},
		{"a file with a passphrase", "-----BEGIN AGE ENCRYPTED FILE-----\n", 0, "the identity file is encrypted: decrypt it first"},
		{"a binary file with a passphrase", intro + "-> scrypt", 0, "the identity file is encrypted: decrypt it first"},
	}
	for _, tc := range tests {
		t.Run(tc.reason, func(t *testing.T) {
			identities, err := ParseIdentities([]byte(tc.file))
			message := ""
			if err != nil {
				message = err.Error()
			}
			if diff := cmp.Diff(tc.want, message); diff != "" || len(identities) != tc.number {
				t.Errorf("%d identities: %s", len(identities), diff)
			}
		})
	}
}
