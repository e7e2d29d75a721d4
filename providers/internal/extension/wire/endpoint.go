package wire

import (
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strconv"

	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"
)

// Endpoint is a server of extensions.
type Endpoint struct {
	base *url.URL
	// authorities are the CA certificates as PEM. Empty: those of the host.
	authorities []byte
}

// EndpointOf returns the server of an ExtensionConfig. Errors name the field.
func EndpointOf(config runtimev1.ClientConfig) (Endpoint, error) {
	base, err := baseOf(config)
	if err != nil {
		return Endpoint{}, err
	}
	if len(config.CABundle) > 0 {
		if err := CheckCertificates(config.CABundle); err != nil {
			return Endpoint{}, fmt.Errorf("spec.clientConfig.caBundle %w", err)
		}
	}
	return Endpoint{base: base, authorities: config.CABundle}, nil
}

// baseOf returns the URL that the paths of hooks are appended to. A Service has priority.
func baseOf(config runtimev1.ClientConfig) (*url.URL, error) {
	if s := config.Service; s.IsDefined() {
		base := &url.URL{Scheme: "https", Host: s.Name + "." + s.Namespace + ".svc"}
		if s.Port != nil {
			base.Host = net.JoinHostPort(base.Host, strconv.Itoa(int(*s.Port)))
		}
		if s.Path != "" {
			path, err := url.Parse(s.Path)
			if err != nil {
				return nil, errors.New("spec.clientConfig.service.path is not a path")
			}
			base = base.JoinPath(path.EscapedPath())
		}
		return base, nil
	}
	if config.URL == "" {
		return nil, errors.New("spec.clientConfig must have a url or a service")
	}
	base, err := url.Parse(config.URL)
	if err != nil || base.Scheme != "https" || base.Host == "" {
		return nil, errors.New("spec.clientConfig.url must be a URL with scheme https and a host") // Parse quotes the URL, with its password.
	}
	return base, nil
}

// CheckCertificates returns an error if a text is not a list of certificates in PEM. Anything else, such as private keys, is an error, so
// that it is not copied where everyone can read it. The error continues the name of a field.
func CheckCertificates(text []byte) error {
	found := false
	for rest := text; ; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		if block.Type != "CERTIFICATE" {
			return errors.New("must have only certificates, in PEM")
		}
		if _, err := x509.ParseCertificate(block.Bytes); err != nil {
			return errors.New("has an invalid certificate")
		}
		found = true
	}
	if !found {
		return errors.New("has no certificate in PEM")
	}
	return nil
}
