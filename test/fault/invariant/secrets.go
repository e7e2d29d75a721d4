package invariant

import (
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/clientcmd"

	"sigs.k8s.io/cluster-api/test/fault/history"
)

// token matches a bootstrap token: the ID is public, the part after the dot is secret.
var token = regexp.MustCompile(`\b[a-z0-9]{6}\.([a-z0-9]{16})\b`)

// needleLength is how much of a long secret is searched for: the rest may be wrapped or truncated.
const needleLength = 48

// Confidential returns the content of Secrets that must not appear elsewhere: parts of private keys, plain and encoded, and
// tokens. The values of the map describe it.
func Confidential(t history.Timeline) map[string]string {
	found := map[string]string{}
	for _, e := range t {
		if e.Object.GetKind() != "Secret" {
			continue
		}
		data, _, _ := unstructured.NestedStringMap(e.Object.Object, "data")
		for key, text := range data {
			raw, err := base64.StdEncoding.DecodeString(text)
			if err != nil {
				continue
			}
			for needle, what := range secretsIn(raw) {
				found[needle] = fmt.Sprintf("%s of Secret %s, key %s", what, e.Object.GetName(), key)
			}
		}
	}
	return found
}

func secretsIn(raw []byte) map[string]string {
	found := map[string]string{}
	if config, err := clientcmd.Load(raw); err == nil {
		for _, user := range config.AuthInfos {
			addKeys(found, user.ClientKeyData)
			if user.Token != "" {
				found[user.Token] = "token"
			}
		}
	}
	addKeys(found, raw)
	for _, match := range token.FindAllStringSubmatch(string(raw), -1) {
		found[match[1]] = "token"
	}
	return found
}

// addKeys adds the private keys of all PEM blocks in a text.
func addKeys(found map[string]string, raw []byte) {
	text := unindent(raw)
	for {
		block, rest := pem.Decode(text)
		if block == nil {
			return
		}
		if strings.Contains(block.Type, "PRIVATE KEY") {
			body := base64.StdEncoding.EncodeToString(block.Bytes)
			found[body[:min(needleLength, len(body))]] = "private key"
			whole := base64.StdEncoding.EncodeToString(pem.EncodeToMemory(block))
			half := len(whole) / 2
			found[whole[half:min(half+needleLength, len(whole))]] = "encoded private key"
		}
		text = rest
	}
}

// unindent removes indentation, so that PEM blocks in YAML are found.
func unindent(raw []byte) []byte {
	lines := strings.Split(string(raw), "\n")
	for i := range lines {
		lines[i] = strings.TrimSpace(lines[i])
	}
	return []byte(strings.Join(lines, "\n"))
}

// noConfidentialContent searches Events, and statuses and annotations of other objects.
func noConfidentialContent(r Run) []Violation {
	all := slices.Concat(r.Before, r.Timeline)
	needles := Confidential(all)
	for _, e := range all {
		if e.Object.GetKind() == "Secret" {
			continue
		}
		text, err := json.Marshal([]any{
			e.Object.Object["status"], e.Object.Object["message"], e.Object.Object["note"], e.Object.GetAnnotations(),
		})
		if err != nil {
			return []Violation{{Detail: err.Error()}}
		}
		if what, found := Leaked(needles, string(text)); found {
			return []Violation{{Detail: fmt.Sprintf("%s %s contains a %s", e.Object.GetKind(), e.Object.GetName(), what), Revision: e.Revision}}
		}
	}
	return nil
}

// Leaked returns the description of a needle that the text contains.
func Leaked(needles map[string]string, text string) (what string, found bool) {
	for needle, what := range needles {
		if strings.Contains(text, needle) {
			return what, true
		}
	}
	return "", false
}
