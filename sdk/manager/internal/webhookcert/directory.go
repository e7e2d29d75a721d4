package webhookcert

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"sigs.k8s.io/controller-runtime/pkg/certwatcher"
)

// Directory is the source of a manager whose certificate is issued elsewhere and provided as files, for
// example in a mounted Secret. Changes of the files take effect without a restart.
type Directory struct {
	watcher *certwatcher.CertWatcher
}

// OpenDirectory reads a certificate and its key from files of a directory. It reports whether they exist: it is not an error if the
// directory contains neither of them or does not exist, but it is one if only one exists or they are invalid.
func OpenDirectory(path, certName, keyName string) (d *Directory, found bool, err error) {
	certificate, key := filepath.Join(path, certName), filepath.Join(path, keyName)
	hasCertificate, err := exists(certificate)
	if err != nil {
		return nil, false, err
	}
	hasKey, err := exists(key)
	if err != nil {
		return nil, false, err
	}
	if !hasCertificate && !hasKey {
		return nil, false, nil
	}
	if hasCertificate != hasKey {
		return nil, false, fmt.Errorf("%s contains only one of %s and %s: provide both, or none to have a certificate issued",
			path, certName, keyName)
	}
	watcher, err := certwatcher.New(certificate, key)
	if err != nil {
		return nil, false, fmt.Errorf("reading %s and %s of %s: %w", certName, keyName, path, err)
	}
	return &Directory{watcher: watcher}, true, nil
}

func exists(file string) (bool, error) {
	_, err := os.Stat(file)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// GetCertificate returns the certificate in the files.
func (d *Directory) GetCertificate(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
	return d.watcher.GetCertificate(hello)
}

// Ready returns nil: trust is configured by the provider of the files.
func (d *Directory) Ready() error { return nil }

// Start watches the files until ctx is done.
func (d *Directory) Start(ctx context.Context) error {
	return d.watcher.Start(ctx)
}
