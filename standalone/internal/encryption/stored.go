package encryption

import (
	"bytes"
	"context"
	"fmt"
	"slices"

	clientv3 "go.etcd.io/etcd/client/v3"
)

const (
	// SecretsPrefix is the etcd prefix of Secrets.
	SecretsPrefix = "/registry/secrets/"
	// encryptedPrefix is the prefix of values encrypted with secretbox, followed by the name of the key and a colon.
	encryptedPrefix = "k8s:enc:secretbox:v1:"
	// page is how many Secrets are read per request.
	page = 200
)

// Stored describes how the Secrets in etcd are encrypted.
type Stored struct {
	// Keys are the names of the keys that Secrets are encrypted with, sorted.
	Keys []string
	// Plain is set if some Secret is not encrypted.
	Plain bool
}

// Inspect checks every Secret in etcd.
func Inspect(ctx context.Context, etcd clientv3.KV) (Stored, error) {
	var found Stored
	from, end := SecretsPrefix, clientv3.GetPrefixRangeEnd(SecretsPrefix)
	for {
		answer, err := etcd.Get(ctx, from, clientv3.WithRange(end), clientv3.WithLimit(page))
		if err != nil {
			return Stored{}, fmt.Errorf("inspect the encryption of Secrets: %w", err)
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
