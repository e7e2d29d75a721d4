package wire

import (
	"crypto/tls"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/certwatcher"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// CertificateFiles are the files of a client certificate, in PEM.
type CertificateFiles struct {
	// Certificate is the file of the certificate, followed by those of intermediate CAs.
	Certificate string
	// Key is the file of its private key.
	Key string
}

// NewCallerWithCertificate returns a Caller that shows servers a certificate. While the Runnable runs, files that change are read again,
// and the next call has the new certificate. It fails if the files cannot be read or do not belong together.
func NewCallerWithCertificate(o Options, files CertificateFiles) (*Caller, manager.Runnable, error) {
	watcher, err := certwatcher.New(files.Certificate, files.Key)
	if err != nil {
		return nil, nil, fmt.Errorf("reading the client certificate for runtime extensions from %s and %s: %w", files.Certificate, files.Key, err)
	}
	o.Certificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return watcher.GetCertificate(nil) }
	caller := NewCaller(o)
	watcher.RegisterCallback(func(tls.Certificate) { caller.CloseIdleConnections() })
	return caller, watcher, nil
}
