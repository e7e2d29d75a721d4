package etcdsnapshot

import (
	"bytes"
	"encoding/json"

	"google.golang.org/protobuf/encoding/protowire"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Prefixes of values, by which API servers tell how they are stored.
var (
	encryptedPrefix = []byte("k8s:enc:")
	protobufPrefix  = []byte("k8s\x00")
)

// sort is how a value is stored.
type sort int

const (
	undecodable sort = iota
	decoded
	encrypted
)

// sortOf decodes a value as an API server without knowledge of its kind does. Of encrypted values only the API server can know more, which
// has the key.
func sortOf(value []byte) sort {
	switch {
	case bytes.HasPrefix(value, encryptedPrefix):
		return encrypted
	case bytes.HasPrefix(value, protobufPrefix):
		var object runtime.Unknown
		if err := object.Unmarshal(value[len(protobufPrefix):]); err != nil || object.APIVersion == "" || object.Kind == "" ||
			!validMessage(object.Raw) {
			return undecodable
		}
		return decoded
	default:
		var object metav1.TypeMeta
		if err := json.Unmarshal(value, &object); err != nil || object.APIVersion == "" || object.Kind == "" {
			return undecodable
		}
		return decoded
	}
}

// validMessage reports whether data is fields of protobuf to its end.
func validMessage(data []byte) bool {
	for len(data) > 0 {
		_, _, n := protowire.ConsumeField(data)
		if n < 0 {
			return false
		}
		data = data[n:]
	}
	return true
}
