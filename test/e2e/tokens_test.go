package e2e

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"

	"sigs.k8s.io/cluster-api/sdk/testenv"
	"sigs.k8s.io/cluster-api/test/journey"
)

// tokenLifetime of requested tokens is longer than a rotation.
const tokenLifetime = 4 * 60 * 60

// tokens returns a token of each kind for ServiceAccount default, as they are issued now: that of a Secret, and a requested one.
func (r *rotation) tokens() []string {
	r.t.Helper()
	config, err := r.kubeconfig(r.t.Context())
	testenv.Must(r.t, err)
	found := make([]string, 2)
	ctx := r.t.Context()
	testenv.Eventually(r.t, "tokens are issued", func() error {
		return connected(config, "", func(api kubernetes.Interface) error {
			secret := &corev1.Secret{
				ObjectMeta: metav1.ObjectMeta{Name: "legacy", Annotations: map[string]string{corev1.ServiceAccountNameKey: "default"}},
				Type:       corev1.SecretTypeServiceAccountToken,
			}
			if _, err := api.CoreV1().Secrets("default").Create(ctx, secret, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
				return err
			}
			secret, err := api.CoreV1().Secrets("default").Get(ctx, secret.Name, metav1.GetOptions{})
			if err != nil {
				return err
			}
			requested, err := api.CoreV1().ServiceAccounts("default").CreateToken(ctx, "default", &authenticationv1.TokenRequest{
				Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: ptr.To[int64](tokenLifetime)},
			}, metav1.CreateOptions{})
			if err != nil {
				return err
			}
			if found[0], found[1] = string(secret.Data[corev1.ServiceAccountTokenKey]), requested.Status.Token; found[0] == "" {
				return errors.New("the Secret has no token")
			}
			return nil
		})
	})
	return found
}

// identified asks the API server who has a token, over a new connection.
func identified(ctx context.Context, kubeconfig []byte, token string) error {
	return connected(kubeconfig, token, func(api kubernetes.Interface) error {
		who, err := api.AuthenticationV1().SelfSubjectReviews().Create(ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
		if err != nil {
			return err
		}
		if want := "system:serviceaccount:default:default"; who.Status.UserInfo.Username != want {
			return fmt.Errorf("the API server answers %q, not to %q", who.Status.UserInfo.Username, want)
		}
		return nil
	})
}

// authenticates probes the API server with each of these tokens in turn.
func (r *rotation) authenticates(what string, tokens []string) *probe {
	turn := 0
	return start(r.t, "requests with ServiceAccount tokens "+what, func(ctx context.Context) error {
		config, err := r.kubeconfig(ctx)
		if err != nil {
			return err
		}
		turn++
		return identified(ctx, config, tokens[turn%len(tokens)])
	})
}

// refused checks that tokens are no longer accepted.
func (r *rotation) refused(tokens []string) {
	r.t.Helper()
	config, err := r.kubeconfig(r.t.Context())
	testenv.Must(r.t, err)
	for i, token := range tokens {
		if err := identified(r.t.Context(), config, token); !apierrors.IsUnauthorized(err) {
			r.t.Errorf("token %d of before the rotation is not refused: %v", i, err)
		}
	}
}

// usesTokens starts the programs of testdata/tokens.yaml.
func usesTokens(t *testing.T, c *journey.Subject) {
	t.Helper()
	kubectl(t, c, "apply", "--filename", filepath.Join("testdata", "tokens.yaml"))
	tokensWork(t, c)
}

// tokensWork waits until all programs of testdata/tokens.yaml succeed.
func tokensWork(t *testing.T, c *journey.Subject) {
	t.Helper()
	for _, name := range []string{"proxy", "starts"} {
		kubectl(t, c, "rollout", "status", "deployment/"+name, "--timeout", "180s")
	}
	list := strings.Fields(kubectl(t, c, "get", "configmap", "failures", "--output", "go-template={{range $k, $v := .data}}{{$k}}={{$v}} {{end}}"))
	t.Logf("requests of programs that start with the token of their Pod, failed so far: %v", list)
}

// proxied probes the API server through Pods that have connected to it with their tokens when they started.
func proxied(t *testing.T, c *journey.Subject) *probe {
	t.Helper()
	return balanced(t, c, "requests by Pods that run", "30081/api/v1/namespaces/default/configmaps/failures", func(body string) bool {
		return strings.Contains(body, `"name":"failures"`) || strings.Contains(body, `"name": "failures"`)
	})
}
