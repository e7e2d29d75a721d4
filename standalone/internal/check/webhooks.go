package check

import (
	"context"
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"sigs.k8s.io/cluster-api/sdk/pki"
)

// authority issues the certificate with which all managers in the copy serve their webhooks, instead of that of the cluster, whose key
// is not read.
type authority struct {
	ca *pki.CA
	// bundle is what the API server of the copy trusts.
	bundle []byte
}

func newAuthority(now time.Time) (*authority, error) {
	ca, err := pki.NewCA(pki.ECDSA, now)
	if err != nil {
		return nil, err
	}
	pair, err := ca.PEM()
	if err != nil {
		return nil, err
	}
	return &authority{ca: ca, bundle: pair.Certificate}, nil
}

// issue writes a certificate for Services into a directory.
func (a *authority) issue(directory string, services map[types.NamespacedName]bool, now time.Time) error {
	request := pki.Request{CommonName: "webhooks", Validity: 30 * 24 * time.Hour, Algorithm: pki.ECDSA, DNSNames: []string{"localhost"}}
	for service := range services {
		request.DNSNames = append(request.DNSNames, service.Name+"."+service.Namespace+".svc")
	}
	pair, err := a.ca.Issue(request, now)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(directory, 0o700); err != nil {
		return err
	}
	for name, content := range map[string][]byte{corev1.TLSCertKey: pair.Certificate, corev1.TLSPrivateKeyKey: pair.Key} {
		if err := os.WriteFile(filepath.Join(directory, name), content, 0o600); err != nil {
			return err
		}
	}
	return nil
}

// trusted returns a client configuration of a webhook that trusts the copy's certificate, and reports whether the webhook is served in the
// copy: by the Service of one of our managers.
func (s *source) trusted(clientConfig map[string]any) bool {
	service, _, _ := unstructured.NestedStringMap(map[string]any{"s": withoutPort(clientConfig["service"])}, "s")
	if !s.services[types.NamespacedName{Namespace: service["namespace"], Name: service["name"]}] {
		return false
	}
	clientConfig["caBundle"] = base64.StdEncoding.EncodeToString(s.authority.bundle)
	return true
}

// withoutPort returns namespace and name of a reference to a Service.
func withoutPort(service any) map[string]any {
	fields, _ := service.(map[string]any)
	return map[string]any{"namespace": fields["namespace"], "name": fields["name"]}
}

// readWebhooks copies the webhooks of our managers. Those of other programs, such as infrastructure providers and policies, are not called.
func (s *source) readWebhooks(ctx context.Context) error {
	for _, resource := range []string{"mutatingwebhookconfigurations", "validatingwebhookconfigurations"} {
		r := admissionregistrationv1.SchemeGroupVersion.WithResource(resource)
		err := s.each(ctx, r, "", metav1.ListOptions{}, func(o *unstructured.Unstructured) error {
			webhooks, _, err := unstructured.NestedSlice(o.Object, "webhooks")
			if err != nil {
				return fmt.Errorf("reading %s %s: %w", o.GetKind(), o.GetName(), err)
			}
			var ours []any
			for _, w := range webhooks {
				webhook, _ := w.(map[string]any)
				clientConfig, _ := webhook["clientConfig"].(map[string]any)
				if clientConfig != nil && s.trusted(clientConfig) {
					ours = append(ours, webhook)
				}
			}
			if len(ours) == 0 {
				return nil
			}
			if err := unstructured.SetNestedSlice(o.Object, ours, "webhooks"); err != nil {
				return err
			}
			return s.add(r.GroupResource(), o)
		})
		if err != nil {
			return err
		}
	}
	return nil
}
