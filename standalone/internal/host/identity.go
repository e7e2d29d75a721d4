package host

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/oauth2"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/transport"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
)

const (
	tokenLifetime = time.Hour
	// tokenShare is the fraction of a token's lifetime after which it is renewed.
	tokenShare   = 0.8
	tokenTimeout = 10 * time.Second
)

// account issues tokens of one ServiceAccount. It implements oauth2.TokenSource.
type account struct {
	client          kubernetes.Interface
	namespace, name string
	clock           clock.PassiveClock
}

// Token requests a token from the API server, as a kubelet does for a Pod. It fails if the ServiceAccount does not exist.
func (a *account) Token() (*oauth2.Token, error) {
	ctx, cancel := context.WithTimeout(context.Background(), tokenTimeout)
	defer cancel()
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
		ExpirationSeconds: ptr.To(int64(tokenLifetime.Seconds())),
	}}
	issued, err := a.client.CoreV1().ServiceAccounts(a.namespace).CreateToken(ctx, a.name, request, metav1.CreateOptions{})
	if err != nil {
		return nil, fmt.Errorf("get a token of ServiceAccount %s/%s: %w", a.namespace, a.name, err)
	}
	now := a.clock.Now()
	life := time.Duration(tokenShare * float64(issued.Status.ExpirationTimestamp.Sub(now)))
	return &oauth2.Token{AccessToken: issued.Status.Token, Expiry: now.Add(life)}, nil
}

// config returns a client configuration that authenticates as this ServiceAccount. Tokens are kept in memory; one that
// the API server rejects (because the ServiceAccount was recreated) is replaced.
func (a *account) config(server string, caData []byte) (*rest.Config, error) {
	tokens := transport.NewCachedTokenSource(a)
	if _, err := tokens.Token(); err != nil {
		return nil, err
	}
	return &rest.Config{
		Host:            server,
		TLSClientConfig: rest.TLSClientConfig{CAData: caData},
		// Client-side rate limits protect an API server with many clients. This one has few; limits set by arguments
		// still apply.
		QPS:           -1,
		WrapTransport: transport.ResettableTokenSourceWrapTransport(tokens),
	}, nil
}
