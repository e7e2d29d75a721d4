package encryption

import (
	"bytes"
	"context"
	"fmt"
	"slices"

	clientv3 "go.etcd.io/etcd/client/v3"
)

const (
	// SecretsPrefix is where the API server keeps Secrets in etcd.
	SecretsPrefix = "/registry/secrets/"
	// encryptedPrefix begins values that secretbox encrypted; the name of the key and a colon follow.
	encryptedPrefix = "k8s:enc:secretbox:v1:"
	// page is how many Secrets are read at once.
	page = 200
)

// Stored tells how the Secrets in etcd are stored.
type Stored struct {
	// Keys are the names of the keys that Secrets are encrypted with, sorted.
	Keys []string
	// Plain says that some Secret is not encrypted.
	Plain bool
}

// Inspect looks at every Secret in etcd.
func Inspect(ctx context.Context, etcd clientv3.KV) (Stored, error) {
	var found Stored
	from, end := SecretsPrefix, clientv3.GetPrefixRangeEnd(SecretsPrefix)
	for {
		answer, err := etcd.Get(ctx, from, clientv3.WithRange(end), clientv3.WithLimit(page))
		if err != nil {
			return Stored{}, fmt.Errorf("looking how Secrets are stored: %w", err)
		}
		for _, kv := range answer.Kvs {
			found.add(kv.Value)
		}
		if !answer.More {
			slices.Sort(found.Keys)
			return found, nil
		}
		from = string(answer.Kvs[len(answer.Kvs)-1].Key) + "\x00"
	}
}

func (s *Stored) add(value []byte) {
	rest, encrypted := bytes.CutPrefix(value, []byte(encryptedPrefix))
	name, _, named := bytes.Cut(rest, []byte(":"))
	switch {
	case !encrypted || !named:
		s.Plain = true
	case !slices.Contains(s.Keys, string(name)):
		s.Keys = append(s.Keys, string(name))
	}
}
