package archive

import (
	"errors"
	"fmt"
	"strings"

	"filippo.io/age"
)

// secretPrefix is how secret keys begin.
const secretPrefix = "AGE-SECRET-KEY-"

// errSecret is the error of secret keys among recipients.
var errSecret = errors.New("is a secret key: specify its recipient, see age-keygen -y, and replace the key if others can read this")

// maxKeys is the largest size of an identity file, in bytes.
const maxKeys = 64 << 10

// ParseRecipients parses recipients as "age-keygen -y" prints them: "age1..." (X25519) or "age1pq1..." (hybrid, post-quantum). age does
// not accept both sorts for one archive. There must be 1 to MaxRecipients, each once. Errors quote none, because it might be a secret key
// by mistake.
func ParseRecipients(texts []string) ([]age.Recipient, error) {
	if len(texts) == 0 || len(texts) > MaxRecipients {
		return nil, fmt.Errorf("must have 1 to %d recipients, not %d", MaxRecipients, len(texts))
	}
	recipients := make([]age.Recipient, 0, len(texts))
	index, hybrids := map[string]int{}, 0
	for i, text := range texts {
		recipient, hybrid, err := parseRecipient(text)
		if err != nil {
			return nil, fmt.Errorf("recipient %d: %w", i+1, err)
		}
		if first, found := index[text]; found {
			return nil, fmt.Errorf("recipient %d is the same as recipient %d", i+1, first)
		}
		index[text] = i + 1
		if hybrid {
			hybrids++
		}
		recipients = append(recipients, recipient)
	}
	if hybrids > 0 && hybrids < len(recipients) {
		return nil, errors.New("recipients must be all post-quantum (age1pq1...), or none: the others would decide how safe the archive is")
	}
	return recipients, nil
}

func parseRecipient(text string) (recipient age.Recipient, hybrid bool, err error) {
	switch {
	case strings.HasPrefix(strings.ToUpper(text), secretPrefix):
		return nil, false, errSecret
	case strings.HasPrefix(text, "age1pq1"):
		recipient, err = age.ParseHybridRecipient(text)
		hybrid = true
	default:
		recipient, err = age.ParseX25519Recipient(text)
	}
	if err != nil {
		// The cause quotes the text.
		return nil, false, errors.New("is invalid: must be a recipient of age, such as age1...")
	}
	return recipient, hybrid, nil
}

// ParseIdentities parses an identity file as age-keygen writes it: one secret key per line; empty lines, and comments that begin with
// "#", are ignored. There must be 1 to MaxRecipients. Errors never quote what the file contains.
func ParseIdentities(file []byte) ([]age.Identity, error) {
	if len(file) > maxKeys {
		return nil, fmt.Errorf("an identity file must not exceed %d bytes", maxKeys)
	}
	if strings.HasPrefix(string(file), strings.TrimSpace(intro)) || strings.HasPrefix(string(file), "-----BEGIN AGE ENCRYPTED FILE") {
		return nil, errors.New("the identity file is encrypted: decrypt it first")
	}
	var identities []age.Identity
	number := 0
	for text := range strings.Lines(string(file)) {
		number++
		text = strings.TrimSpace(text)
		if text == "" || strings.HasPrefix(text, "#") {
			continue
		}
		identity, err := parseIdentity(text)
		if err != nil {
			return nil, fmt.Errorf("line %d of the identity file %w", number, err)
		}
		identities = append(identities, identity)
	}
	if len(identities) == 0 || len(identities) > MaxRecipients {
		return nil, fmt.Errorf("an identity file must have 1 to %d secret keys, not %d", MaxRecipients, len(identities))
	}
	return identities, nil
}

func parseIdentity(text string) (identity age.Identity, err error) {
	switch {
	case strings.HasPrefix(text, "age1"):
		return nil, errors.New("is a recipient, a public key: a secret key is required, " + secretPrefix + "...")
	case strings.HasPrefix(text, secretPrefix+"PQ-"):
		identity, err = age.ParseHybridIdentity(text)
	default:
		identity, err = age.ParseX25519Identity(text)
	}
	if err != nil {
		// The cause may quote parts of the key.
		return nil, errors.New("is invalid: must be a secret key of age, " + secretPrefix + "...")
	}
	return identity, nil
}
