package controlplane

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	testclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/v1beta1"
	"sigs.k8s.io/cluster-api/provider/pki"
	"sigs.k8s.io/cluster-api/provider/step"
)

// marker is what must not be seen anywhere.
const marker = "hunter2-hunter2"

// refuses is a client to an API server that refuses to write Secrets of a purpose and quotes what it was sent, as an admission
// webhook may.
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
			// One that is there already is refused for that, so that the requests which follow are refused here.
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

// What an API server says about a Secret that it refuses may quote the Secret.
func TestRefusedSecretsAreNotShown(t *testing.T) {
	brought := func(p pki.Purpose, controllers ...metav1.OwnerReference) *corev1.Secret {
		secret := userSecret(p, map[string][]byte{"tls.crt": []byte(marker), "tls.key": []byte(marker), pki.KubeconfigKey: []byte(marker)})
		secret.OwnerReferences = controllers
		return secret
	}
	config := metav1.OwnerReference{APIVersion: bootstrapv1.GroupVersion.String(), Kind: configKind.Kind, Name: "m", UID: "m", Controller: new(true)}
	tests := []struct {
		reason   string
		objects  []client.Object
		unseen   bool // the cache goes by labels, and the objects have none
		made     bool // certificates and kubeconfig were made before
		refused  pki.Purpose
		later    time.Duration
		verbatim string // what the error says nevertheless
	}{
		{reason: "new keys", refused: pki.ClusterCA, verbatim: "creating it"},
		{reason: "the label of keys that a user brings", objects: []client.Object{brought(pki.EtcdCA)}, unseen: true, refused: pki.EtcdCA, verbatim: "labelling it"},
		{reason: "keys taken over from the first Machine", objects: []client.Object{brought(pki.FrontProxyCA, config)}, refused: pki.FrontProxyCA, verbatim: "taking over"},
		{reason: "a new kubeconfig", refused: pki.Kubeconfig, verbatim: "creating it"},
		{reason: "the label of a kubeconfig that a user brings", objects: []client.Object{brought(pki.Kubeconfig)}, unseen: true, refused: pki.Kubeconfig, verbatim: "labelling it"},
		{reason: "a renewed kubeconfig", made: true, later: 300 * 24 * time.Hour, refused: pki.Kubeconfig, verbatim: "renewing"},
	}
	for _, tt := range tests {
		t.Run(tt.reason, func(t *testing.T) {
			b := newBench(t, tt.objects...)
			steps := []func(context.Context, *scope) (step.Result, error){b.certificates, b.kubeconfig}
			run := func() (err error) {
				for i := 0; i < len(steps) && err == nil; i++ {
					_, err = steps[i](t.Context(), b.scope)
				}
				return err
			}
			if tt.made {
				if err := run(); err != nil {
					t.Fatal(err)
				}
			}
			if tt.unseen {
				b.Secrets = labelled{b.Client}
			}
			b.Clock = testclock.NewFakePassiveClock(now.Add(tt.later))
			b.Client = refuses(t, b.Client, tt.refused)
			err := run()
			if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), tt.verbatim) || !strings.Contains(err.Error(), "403 Forbidden") {
				t.Errorf("error %v; it says what was tried, and the code of the answer", err)
			}
			if shown := fmt.Sprintf("%v %+v %#v", err, err, b.kcp.Status); strings.Contains(shown, marker) || strings.Contains(shown, "BEGIN") {
				t.Errorf("a Secret is shown: %s", shown)
			}
		})
	}
}
