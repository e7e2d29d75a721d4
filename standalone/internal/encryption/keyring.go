// Package encryption keeps the keys with which the API server encrypts Secrets before they reach the disk.
//
// The keys are in one file, in the format of kube-apiserver's EncryptionConfiguration, which it reads. The first key
// encrypts; the others only decrypt what is not rewritten yet. Which keys are needed is not remembered but read from
// etcd (see Inspect), so a rotation that is interrupted anywhere goes on with the next start, and no key is dropped
// while something needs it.
//
// What belongs here: the file of keys and what etcd holds. Rewriting Secrets is the control plane's business.
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
	// keySize is what secretbox (XSalsa20 and Poly1305) takes, in bytes.
	keySize = 32
	// keyLifetime is how old a key may be at a start that still encrypts with it.
	keyLifetime = 90 * 24 * time.Hour
	// keyName is the form of keys' names: when they were made.
	keyName = "20060102T150405Z"
)

// Options say how to open a Keyring.
type Options struct {
	// Path of the file. Its folder exists.
	Path string
	// Rotate makes a new key whatever the age of the newest.
	Rotate bool
	// Now is the time.
	Now time.Time
}

// Keyring is the file of keys.
type Keyring struct {
	path  string
	keys  []apiserverv1.Key // the first encrypts
	plain bool              // Secrets that are not encrypted can be read
}

// Open reads the keys, makes one when there is none or the newest is too old, and writes the file that an API server
// needs to read what is stored. It fails when a key that something is encrypted with is missing.
func Open(stored Stored, o Options) (*Keyring, error) {
	k := &Keyring{path: o.Path}
	written, err := k.read()
	if err != nil {
		return nil, err
	}
	if missing := k.missing(stored); len(missing) > 0 {
		return nil, fmt.Errorf("Secrets in etcd are encrypted with keys (%s) that %s does not hold: put back the file that has them, or name it with --encryption-keys",
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

// Path is where the file is.
func (k *Keyring) Path() string { return k.path }

// Current reports whether everything is encrypted with the newest key.
func (k *Keyring) Current(stored Stored) bool {
	return !stored.Plain && !slices.ContainsFunc(stored.Keys, func(name string) bool { return name != k.keys[0].Name })
}

// Forget drops the keys that nothing is encrypted with any more, except the newest. An API server that runs goes on with
// the keys that it has read.
func (k *Keyring) Forget(stored Stored) error {
	if missing := k.missing(stored); len(missing) > 0 {
		return fmt.Errorf("%s misses keys that are in use: %s", k.path, strings.Join(missing, ", "))
	}
	before, err := k.marshal()
	if err != nil {
		return err
	}
	k.retain(stored)
	return k.write(before)
}

// read takes over the keys of the file, if there is one, and returns its content.
func (k *Keyring) read() ([]byte, error) {
	info, err := os.Stat(k.path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the encryption keys: %w", err)
	}
	if info.Mode().Perm()&0o077 != 0 {
		return nil, fmt.Errorf("%s holds encryption keys and other users can reach it (%s): run chmod 600 %s", k.path, info.Mode(), k.path)
	}
	raw, err := os.ReadFile(k.path)
	if err != nil {
		return nil, fmt.Errorf("reading the encryption keys: %w", err)
	}
	config := &apiserverv1.EncryptionConfiguration{}
	// The parser's message is left out: it may quote a key.
	if yaml.UnmarshalStrict(raw, config) != nil || len(config.Resources) != 1 || len(config.Resources[0].Providers) == 0 {
		return nil, fmt.Errorf("%s is not a file of encryption keys that capi wrote: put the original back, or name it with --encryption-keys", k.path)
	}
	for _, provider := range config.Resources[0].Providers {
		switch {
		case provider.Secretbox != nil:
			k.keys = append(k.keys, provider.Secretbox.Keys...)
		case provider.Identity == nil:
			return nil, fmt.Errorf("%s names a way of encryption that capi does not write: only secretbox and identity are expected", k.path)
		}
	}
	return raw, nil
}

// missing lists the keys that something is encrypted with and that are not there.
func (k *Keyring) missing(stored Stored) []string {
	return slices.DeleteFunc(slices.Clone(stored.Keys), func(name string) bool {
		return slices.ContainsFunc(k.keys, func(key apiserverv1.Key) bool { return key.Name == name })
	})
}

// retain keeps the newest key, and others that are needed.
func (k *Keyring) retain(stored Stored) {
	newest := k.keys[0].Name
	k.keys = slices.DeleteFunc(k.keys, func(key apiserverv1.Key) bool {
		return key.Name != newest && !slices.Contains(stored.Keys, key.Name)
	})
	k.plain = stored.Plain
}

// add puts a new key in front.
func (k *Keyring) add(now time.Time) error {
	name := now.UTC().Format(keyName)
	if len(k.keys) > 0 && k.keys[0].Name == name {
		return nil // made this very second
	}
	secret := make([]byte, keySize)
	if _, err := rand.Read(secret); err != nil {
		return fmt.Errorf("making an encryption key: %w", err)
	}
	k.keys = slices.Insert(k.keys, 0, apiserverv1.Key{Name: name, Secret: base64.StdEncoding.EncodeToString(secret)})
	return nil
}

func tooOld(name string, now time.Time) bool {
	made, err := time.Parse(keyName, name)
	return err == nil && now.Sub(made) > keyLifetime
}

// write replaces the file if its content is to change.
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
		return nil, errors.New("writing the encryption keys: they cannot be encoded")
	}
	return raw, nil
}
