// Package encryption manages the keys with which the API server encrypts Secrets at rest.
//
// The keys are in one file, an EncryptionConfiguration for kube-apiserver. The first key encrypts; the others only
// decrypt what is not rewritten yet. Which keys are in use is determined from etcd (see Inspect), so an interrupted
// rotation continues at the next start, and no key is dropped while it is in use.
//
// Package controlplane rewrites Secrets.
package encryption

import (
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	apiserverv1 "k8s.io/apiserver/pkg/apis/apiserver/v1"
	"sigs.k8s.io/yaml"

	"sigs.k8s.io/cluster-api/standalone/internal/datadir"
)

const (
	// keySize is the key size of secretbox (XSalsa20 and Poly1305), in bytes.
	keySize = 32
	// keyLifetime is the age at which a start replaces a key.
	keyLifetime = 90 * 24 * time.Hour
	// keyName is the time format of keys' names, which are their creation times.
	keyName = "20060102T150405Z"
)

// Options configure a Keyring.
type Options struct {
	// Path of the file. Its folder exists.
	Path string
	// Rotate generates a new key regardless of the age of the latest one.
	Rotate bool
	// Now is the current time.
	Now time.Time
}

// Keyring is the file with the keys.
type Keyring struct {
	path  string
	keys  []apiserverv1.Key // the first one encrypts
	plain bool              // unencrypted Secrets can be read
}

// Open reads the keys, generates one if there is none or the latest is too old, and writes the file for the API server.
// It fails if a key that is in use is missing.
func Open(stored Stored, o Options) (*Keyring, error) {
	k := &Keyring{path: o.Path}
	written, err := k.read()
	if err != nil {
		return nil, err
	}
	if missing := k.missing(stored); len(missing) > 0 {
		return nil, fmt.Errorf("Secrets in etcd are encrypted with keys (%s) that are missing in %s: "+
			"restore the file that has them, or set its path with --encryption-keys",
			strings.Join(missing, ", "), o.Path)
	}
	if len(k.keys) == 0 || o.Rotate || tooOld(k.keys[0].Name, o.Now) {
		if err := k.add(o.Now); err != nil {
			return nil, err
		}
	}
	k.retain(stored)
	return k, k.write(written)
}

// Path is the path of the file.
func (k *Keyring) Path() string { return k.path }

// Current reports whether everything is encrypted with the latest key.
func (k *Keyring) Current(stored Stored) bool {
	return !stored.Plain && !slices.ContainsFunc(stored.Keys, func(name string) bool { return name != k.keys[0].Name })
}

// Forget drops the keys that are not in use, except the latest. A running API server continues to use the keys that it
// has read.
func (k *Keyring) Forget(stored Stored) error {
	if missing := k.missing(stored); len(missing) > 0 {
		return fmt.Errorf("%s lacks keys that are in use: %s", k.path, strings.Join(missing, ", "))
	}
	before, err := k.marshal()
	if err != nil {
		return err
	}
	k.retain(stored)
	return k.write(before)
}

// read loads the keys from the file, if it exists, and returns its content.
func (k *Keyring) read() ([]byte, error) {
	info, err := os.Stat(k.path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the encryption keys: %w", err)
	}
	if info.Mode().Perm()&0o077 != 0 {
		return nil, fmt.Errorf("%s contains encryption keys, but is accessible by other users (%s): run chmod 600 %s",
			k.path, info.Mode(), k.path)
	}
	raw, err := os.ReadFile(k.path)
	if err != nil {
		return nil, fmt.Errorf("read the encryption keys: %w", err)
	}
	if !k.parse(raw) {
		return nil,
			fmt.Errorf("%s is not a file of encryption keys written by capi: restore the original, or set its path with --encryption-keys", k.path)
	}
	return raw, nil
}

// parse adds the keys of a file, and reports whether it is one that was written by this package. The parser's error is omitted because it
// may quote a key.
func (k *Keyring) parse(raw []byte) bool {
	config := &apiserverv1.EncryptionConfiguration{}
	if yaml.UnmarshalStrict(raw, config) != nil || len(config.Resources) != 1 || len(config.Resources[0].Providers) == 0 {
		return false
	}
	for _, provider := range config.Resources[0].Providers {
		switch {
		case provider.Secretbox != nil:
			k.keys = append(k.keys, provider.Secretbox.Keys...)
		case provider.Identity == nil:
			return false
		}
	}
	return true
}

// missing lists the keys that are in use but missing.
func (k *Keyring) missing(stored Stored) []string {
	return slices.DeleteFunc(slices.Clone(stored.Keys), func(name string) bool {
		return slices.ContainsFunc(k.keys, func(key apiserverv1.Key) bool { return key.Name == name })
	})
}

// retain keeps the latest key, and others that are in use.
func (k *Keyring) retain(stored Stored) {
	newest := k.keys[0].Name
	k.keys = slices.DeleteFunc(k.keys, func(key apiserverv1.Key) bool {
		return key.Name != newest && !slices.Contains(stored.Keys, key.Name)
	})
	k.plain = stored.Plain
}

// add prepends a new key.
func (k *Keyring) add(now time.Time) error {
	name := now.UTC().Format(keyName)
	if len(k.keys) > 0 && k.keys[0].Name == name {
		return nil // generated within this second
	}
	secret := make([]byte, keySize)
	if _, err := rand.Read(secret); err != nil {
		return fmt.Errorf("generate an encryption key: %w", err)
	}
	k.keys = slices.Insert(k.keys, 0, apiserverv1.Key{Name: name, Secret: base64.StdEncoding.EncodeToString(secret)})
	return nil
}

func tooOld(name string, now time.Time) bool {
	made, err := time.Parse(keyName, name)
	return err == nil && now.Sub(made) > keyLifetime
}

// write replaces the file if its content changes.
func (k *Keyring) write(before []byte) error {
	raw, err := k.marshal()
	if err != nil || string(raw) == string(before) {
		return err
	}
	return datadir.WriteFile(k.path, raw, 0o600)
}

func (k *Keyring) marshal() ([]byte, error) {
	providers := []apiserverv1.ProviderConfiguration{{Secretbox: &apiserverv1.SecretboxConfiguration{Keys: k.keys}}}
	if k.plain {
		providers = append(providers, apiserverv1.ProviderConfiguration{Identity: &apiserverv1.IdentityConfiguration{}})
	}
	config := &apiserverv1.EncryptionConfiguration{
		Resources: []apiserverv1.ResourceConfiguration{{Resources: []string{"secrets"}, Providers: providers}},
	}
	config.SetGroupVersionKind(apiserverv1.SchemeGroupVersion.WithKind("EncryptionConfiguration"))
	raw, err := yaml.Marshal(config)
	if err != nil {
		return nil, errors.New("encode the encryption keys")
	}
	return raw, nil
}

// Names returns the names of the keys in the content of a file that Open has written; none if it is empty.
func Names(content []byte) ([]string, error) {
	if len(content) == 0 {
		return nil, nil
	}
	k := &Keyring{}
	if !k.parse(content) {
		return nil, errors.New("is not a file of encryption keys written by capi")
	}
	names := make([]string, 0, len(k.keys))
	for _, key := range k.keys {
		names = append(names, key.Name)
	}
	return names, nil
}
