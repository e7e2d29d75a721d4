package workload

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
)

const (
	// apiServerName is the prefix of the names of API server Pods, and the name of their container.
	apiServerName = "kube-apiserver"
	// apiServerPort is the default port of kubeadm.
	apiServerPort = 6443
	// handshakeTimeout bounds reading a certificate.
	handshakeTimeout = 10 * time.Second
)

// CertificateExpiry implements connection.Workload, with a TLS handshake through a forwarded port.
func (c *Cluster) CertificateExpiry(ctx context.Context, node string) (time.Time, error) {
	ctx, cancel := context.WithTimeout(ctx, handshakeTimeout)
	defer cancel()
	expiry, err := c.certificateExpiry(ctx, node)
	if err != nil {
		return time.Time{}, fmt.Errorf("reading the certificate of the API server on Node %s: %w", node, err)
	}
	return expiry, nil
}

func (c *Cluster) certificateExpiry(ctx context.Context, node string) (time.Time, error) {
	trusted, err := rest.TLSConfigFor(c.connection.Config)
	if err != nil {
		return time.Time{}, err
	}
	if trusted == nil {
		return time.Time{}, errors.New("the connection to the workload cluster does not use TLS")
	}
	key := staticPod(apiServerName, node)
	pod := &corev1.Pod{}
	if err := c.Client.Get(ctx, key, pod); err != nil {
		return time.Time{}, err
	}
	raw, err := c.forward(ctx, key, probedPort(pod))
	if err != nil {
		return time.Time{}, err
	}
	defer raw.Close() //nolint:errcheck // Nothing was written.
	var expiry time.Time
	handshake := tls.Client(raw, &tls.Config{
		MinVersion: tls.VersionTLS12,
		ServerName: "kubernetes",
		RootCAs:    trusted.RootCAs,
		// The CA of the cluster must have signed the certificate. Its names do not matter, because nothing is sent.
		InsecureSkipVerify: true, //nolint:gosec // See VerifyConnection.
		VerifyConnection: func(state tls.ConnectionState) error {
			var err error
			expiry, err = c.expiryOf(state.PeerCertificates, trusted.RootCAs)
			return err
		},
	})
	err = handshake.HandshakeContext(ctx)
	return expiry, err
}

func (c *Cluster) expiryOf(chain []*x509.Certificate, roots *x509.CertPool) (time.Time, error) {
	if len(chain) == 0 {
		return time.Time{}, errors.New("the API server has no certificate")
	}
	between := x509.NewCertPool()
	for _, certificate := range chain[1:] {
		between.AddCert(certificate)
	}
	_, err := chain[0].Verify(x509.VerifyOptions{Roots: roots, Intermediates: between, CurrentTime: c.clock.Now()})
	return chain[0].NotAfter, err
}

// probedPort returns the port of the liveness probe, which is the port of the API server.
func probedPort(pod *corev1.Pod) int {
	if container := containerOf(&pod.Spec, apiServerName); container != nil && container.LivenessProbe != nil {
		if get := container.LivenessProbe.HTTPGet; get != nil && get.Port.IntValue() > 0 {
			return get.Port.IntValue()
		}
	}
	return apiServerPort
}
