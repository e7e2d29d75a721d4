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

// legacyToken returns the token in a Secret of ServiceAccount default, which it creates if there is none. API servers refuse others: a copy
// is of use until the Secret is signed again.
func legacyToken(ctx context.Context, kubeconfig []byte) (token string, err error) {
	err = connected(kubeconfig, "", func(api kubernetes.Interface) error {
		secret, err := api.CoreV1().Secrets("default").Get(ctx, "legacy", metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			secret, err = api.CoreV1().Secrets("default").Create(ctx, &corev1.Secret{
				ObjectMeta: metav1.ObjectMeta{Name: "legacy", Annotations: map[string]string{corev1.ServiceAccountNameKey: "default"}},
				Type:       corev1.SecretTypeServiceAccountToken,
			}, metav1.CreateOptions{})
		}
		if err != nil {
			return err
		}
		if token = string(secret.Data[corev1.ServiceAccountTokenKey]); token == "" {
			return errors.New("the Secret has no token")
		}
		return nil
	})
	return token, err
}

// tokens returns the token in the Secret, and a requested one, as they are issued now.
func (r *rotation) tokens() (legacy, requested string) {
	r.t.Helper()
	config, err := r.kubeconfig(r.t.Context())
	testenv.Must(r.t, err)
	testenv.Eventually(r.t, "the token in the Secret is signed", func() error {
		legacy, err = legacyToken(r.t.Context(), config)
		return err
	})
	testenv.Must(r.t, connected(config, "", func(api kubernetes.Interface) error {
		answer, err := api.CoreV1().ServiceAccounts("default").CreateToken(r.t.Context(), "default", &authenticationv1.TokenRequest{
			Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: ptr.To[int64](tokenLifetime)},
		}, metav1.CreateOptions{})
		if err != nil {
			return err
		}
		requested = answer.Status.Token
		return nil
	}))
	return legacy, requested
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

// authenticates probes the API server with a requested token.
func (r *rotation) authenticates(requested string) *probe {
	return start(r.t, "requests with a token that was requested before", func(ctx context.Context) error {
		config, err := r.kubeconfig(ctx)
		if err != nil {
			return err
		}
		return identified(ctx, config, requested)
	})
}

// authenticatesAsOfNow probes the API server with the token that the Secret has.
func (r *rotation) authenticatesAsOfNow() *probe {
	return start(r.t, "requests with the token in the Secret", func(ctx context.Context) error {
		config, err := r.kubeconfig(ctx)
		if err != nil {
			return err
		}
		token, err := legacyToken(ctx, config)
		if err != nil {
			return err
		}
		return identified(ctx, config, token)
	})
}

// refused checks that tokens are no longer accepted.
func (r *rotation) refused(tokens ...string) {
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
