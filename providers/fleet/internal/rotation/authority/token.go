package authority

import (
	"encoding/base64"
	"encoding/json"
	"strings"
)

// SignedBy reports whether the header of a ServiceAccount token names the first public key in PEM. A token of another format is not.
func SignedBy(token string, publicKey []byte) bool {
	key, err := public(publicKey)
	if err != nil {
		return false
	}
	sum, err := publicSum(key)
	if err != nil {
		return false
	}
	head, _, _ := strings.Cut(token, ".")
	text, err := base64.RawURLEncoding.DecodeString(head)
	if err != nil {
		return false
	}
	header := struct {
		KeyID string `json:"kid"`
	}{}
	return json.Unmarshal(text, &header) == nil && header.KeyID == base64.RawURLEncoding.EncodeToString(sum[:])
}
