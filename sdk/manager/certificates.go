package manager

import (
	"crypto/tls"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	cliflag "k8s.io/component-base/cli/flag"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	"sigs.k8s.io/cluster-api/sdk/manager/internal/serving"
	"sigs.k8s.io/cluster-api/sdk/manager/internal/webhookcert"
)

// certificates returns the source: files if there are any, otherwise the manager's own Secret, otherwise memory. In a shared process, which
// does not have a mounted volume per component, the host says where files are.
func (r *run) certificates() (certificateSource, error) {
	if r.host.shared() && r.host.CertDir != "" {
		directory, found, err := webhookcert.OpenDirectory(r.host.CertDir, corev1.TLSCertKey, corev1.TLSPrivateKeyKey)
		if err == nil && !found {
			err = fmt.Errorf("%s has no %s", r.host.CertDir, corev1.TLSCertKey)
		}
		if err != nil {
			return nil, fmt.Errorf("reading the webhook certificate of the host: %w", err)
		}
		return directory, nil
	}
	if !r.host.shared() {
		directory, found, err := webhookcert.OpenDirectory(r.options.webhookCertDir,
			r.options.webhookCertName, r.options.webhookKeyName)
		if err != nil {
			return nil, fmt.Errorf("reading --webhook-cert-dir: %w", err)
		}
		if found {
			r.log.Info("Reading the webhook certificate from files", "directory", r.options.webhookCertDir)
			return directory, nil
		}
	}
	service := types.NamespacedName{Namespace: r.namespace, Name: r.component.WebhookService}
	if !r.inCluster {
		r.log.Info("Keeping the webhook certificate in memory, without configuring API servers to trust it: set POD_NAMESPACE to change that")
		return webhookcert.NewMemory(clock.RealClock{}, append(webhookcert.DNSNames(service), "localhost")...), nil
	}
	client, err := rest.HTTPClientFor(r.config)
	if err != nil {
		return nil, fmt.Errorf("preparing connections to the API server: %w", err)
	}
	return webhookcert.NewKeeper(webhookcert.KeeperOptions{
		Config:      r.config,
		HTTPClient:  client,
		Service:     service,
		Definitions: r.component.Definitions,
		Clock:       clock.RealClock{},
		Log:         r.log.WithName("webhook-certificate"),
	})
}

// webhooks returns the webhook server and the source of its certificate; both are nil if the component has no webhooks.
func (r *run) webhooks() (certificateSource, webhook.Server, error) {
	if r.component.WebhookService == "" {
		return nil, nil, nil
	}
	source, err := r.certificates()
	if err != nil {
		return nil, nil, err
	}
	server, err := r.webhookServer(source)
	if err != nil {
		return nil, nil, err
	}
	return source, server, nil
}

func (r *run) webhookServer(source certificateSource) (webhook.Server, error) {
	listener, err := r.listen(ListenWebhook, fmt.Sprintf(":%d", r.options.webhookPort))
	if err != nil {
		return nil, err
	}
	if listener == nil {
		return nil, fmt.Errorf("%s has webhooks, but no listener for them", r.component.Name)
	}
	o := serving.WebhookOptions{Listener: listener, GetCertificate: source.GetCertificate}
	// The flags have been validated.
	if o.MinVersion, err = cliflag.TLSVersion(r.options.tlsMinVersion); err != nil {
		return nil, err
	}
	if o.CipherSuites, err = cliflag.TLSCipherSuites(r.options.tlsCipherSuites); err != nil {
		return nil, err
	}
	if o.MinVersion >= tls.VersionTLS13 && len(o.CipherSuites) > 0 {
		r.log.Info("Ignoring --tls-cipher-suites: cipher suites of TLS 1.3 are not configurable")
	}
	return serving.NewWebhooks(o), nil
}
