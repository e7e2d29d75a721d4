package credentials

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/v1beta2"
	"sigs.k8s.io/cluster-api/providers/control-plane-kubeadm/internal/snapshot"
	"sigs.k8s.io/cluster-api/sdk/pki"
	"sigs.k8s.io/cluster-api/sdk/testenv"
	"sigs.k8s.io/cluster-api/sdk/testenv/object"
)

// marker must not be in any message.
const marker = "hunter2-hunter2"

// refuses is a client of an API server that rejects Secrets with one purpose, with messages that contain the Secret, as an
// admission webhook may.
func refuses(t *testing.T, c client.Client, purpose pki.Purpose) client.Client {
	t.Helper()
	refused := func(obj client.Object) error {
		secret, ok := obj.(*corev1.Secret)
		if !ok || secret.Name != pki.SecretName("c", purpose) {
			return nil
		}
		return apierrors.NewForbidden(corev1.Resource("secrets"), secret.Name, fmt.Errorf("%s: %s", marker, secret.Data))
	}
	return interceptor.NewClient(c.(client.WithWatch), interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, obj client.Object, o ...client.CreateOption) error {
			// If it exists, the API server returns AlreadyExists, and the requests that follow are rejected.
			err := c.Get(ctx, client.ObjectKeyFromObject(obj), &corev1.Secret{})
			if refused := refused(obj); refused != nil && apierrors.IsNotFound(err) {
				return refused
			}
			return c.Create(ctx, obj, o...)
		},
		Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, p client.Patch, o ...client.PatchOption) error {
			if err := refused(obj); err != nil {
				return err
			}
			return c.Patch(ctx, obj, p, o...)
		},
	})
}

// The error of a rejected Secret may contain the Secret.
func TestRejectedSecretsAreNotShown(t *testing.T) {
	provided := func(p pki.Purpose, controllers ...metav1.OwnerReference) *corev1.Secret {
		secret := userSecret(p, map[string][]byte{"tls.crt": []byte(marker), "tls.key": []byte(marker), pki.KubeconfigKey: []byte(marker)})
		secret.OwnerReferences = controllers
		return secret
	}
	config := metav1.OwnerReference{APIVersion: bootstrapv1.GroupVersion.String(), Kind: snapshot.ConfigKind().Kind, Name: "m", UID: "m", Controller: new(true)}
	tests := []struct {
		reason   string
		objects  []client.Object
		unseen   bool // the objects lack the label of the cache
		created  bool // certificates and kubeconfig exist
		refused  pki.Purpose
		later    time.Duration
		verbatim string // part of the error
	}{
		{reason: "new keys", refused: pki.ClusterCA, verbatim: "creating it"},
		{reason: "the label of keys that a user provides", objects: []client.Object{provided(pki.EtcdCA)}, unseen: true, refused: pki.EtcdCA, verbatim: "labeling it"},
		{reason: "keys of the first Machine", objects: []client.Object{provided(pki.FrontProxyCA, config)}, refused: pki.FrontProxyCA, verbatim: "taking over"},
		{reason: "a new kubeconfig", refused: pki.Kubeconfig, verbatim: "creating it"},
		{reason: "the label of a kubeconfig that a user provides", objects: []client.Object{provided(pki.Kubeconfig)}, unseen: true, refused: pki.Kubeconfig, verbatim: "labeling it"},
		{reason: "a renewed kubeconfig", created: true, later: 300 * 24 * time.Hour, refused: pki.Kubeconfig, verbatim: "renewing"},
	}
	for _, tt := range tests {
		t.Run(tt.reason, func(t *testing.T) {
			b := newBench(t, tt.objects...)
			run := func() error {
				_, err := b.take(t.Context(), "certificates", "kubeconfig")
				return err
			}
			if tt.created {
				testenv.Must(t, run())
			}
			if tt.unseen {
				b.Secrets = labeled{b.Client}
			}
			b.API.Clock.SetTime(object.Now().Add(tt.later))
			b.Client = refuses(t, b.Client, tt.refused)
			err := run()
			if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), tt.verbatim) || !strings.Contains(err.Error(), "403 Forbidden") {
				t.Errorf("error %v, want the operation and the status code", err)
			}
			if shown := fmt.Sprintf("%v %+v %#v", err, err, b.KCP.Status); strings.Contains(shown, marker) || strings.Contains(shown, "BEGIN") {
				t.Errorf("a Secret is shown: %s", shown)
			}
		})
	}
}
