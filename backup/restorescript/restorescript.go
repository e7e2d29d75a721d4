package restorescript

import (
	"bytes"
	"crypto/aes"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"
)

// DefaultDataDir is the data directory of etcd in clusters that do not have another one in clusterConfiguration.etcd.local.dataDir.
const DefaultDataDir = "/var/lib/etcd"

// KeySize is the size of Config.Key in bytes: that of AES-256.
const KeySize = 32

// Script is a script for /bin/sh. Its argument is the data directory, by default DefaultDataDir; its configuration is the file restore.json
// beside it. It downloads, checks, decrypts and unpacks the data, retries downloads for ten minutes, and then removes its configuration.
// It refuses a directory that has data of another origin, and succeeds without doing anything if it has succeeded before.
//
//go:embed restore.sh
var Script string

// Config is the configuration of the script: data of etcd that a machine downloads before kubeadm runs. That is a gzipped tar of etcd's
// data directory, with member/snap/db and member/wal, encrypted with AES-256-CTR.
type Config struct {
	// URL is where the machine downloads it, by HTTP or HTTPS, without redirects. It may contain credentials.
	URL string `json:"url"`
	// SHA256 is the hash of the encrypted file, Key the key, and IV the initial counter, all in hexadecimal.
	SHA256 string `json:"sha256"`
	Key    string `json:"key"`
	IV     string `json:"iv"`
}

// Check returns which field is invalid, or nil. It does not quote values.
func (c Config) Check() error {
	at, err := url.Parse(c.URL)
	if err != nil || at.Scheme != "http" && at.Scheme != "https" || at.Host == "" {
		return errors.New("url: must be an absolute URL with the scheme http or https")
	}
	if strings.ContainsFunc(c.URL, func(r rune) bool { return r <= ' ' || r == '"' || r == '\\' || r >= 0x7f }) {
		return errors.New("url: must not contain spaces, quotes, backslashes, or characters that are not ASCII; escape them")
	}
	for _, f := range []struct {
		name, value string
		bytes       int
	}{{"sha256", c.SHA256, sha256.Size}, {"key", c.Key, KeySize}, {"iv", c.IV, aes.BlockSize}} {
		if b, err := hex.DecodeString(f.value); err != nil || len(b) != f.bytes {
			return fmt.Errorf("%s: must have %d hexadecimal digits", f.name, 2*f.bytes)
		}
	}
	return nil
}

// Encode returns the configuration as the script reads it, if it is valid.
func (c Config) Encode() ([]byte, error) {
	if err := c.Check(); err != nil {
		return nil, err
	}
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	err := encoder.Encode(c)
	return out.Bytes(), err
}

// Parse parses a configuration, and checks it. Errors do not quote it.
func Parse(text string) (Config, error) {
	c := Config{}
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.DisallowUnknownFields()
	if decoder.Decode(&c) != nil {
		return Config{}, errors.New("it is not a JSON object with the fields url, sha256, key and iv")
	}
	return c, c.Check()
}
