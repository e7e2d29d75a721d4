// Package access authenticates and authorizes requests with the API server: it reviews the bearer token (TokenReview), and
// whether the user may send this method to this path (SubjectAccessReview). Positive results are
// cached for a while, so that scrapers hardly cause requests. Negative results are not: a review
// that failed is indistinguishable from an unknown token, and forged tokens would evict valid ones.
// Instead, reviews of unknown tokens are rate-limited per client address: a client with a new token, which
// ServiceAccounts get every hour, is not blocked by another client that forges tokens.
//
// The libraries that API servers use for that would be a fifth of every manager's binary. The handlers
// behind the check do not belong here.
package access

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/go-logr/logr"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/cache"
	authentication "k8s.io/client-go/kubernetes/typed/authentication/v1"
	authorization "k8s.io/client-go/kubernetes/typed/authorization/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"k8s.io/utils/lru"
)

const (
	// knownFor is how long the user of a token is cached. acquaintedFor is how long it is remembered that the token was valid.
	knownFor      = time.Minute
	acquaintedFor = time.Hour
	// allowedFor is how long permissions are cached.
	allowedFor = 5 * time.Minute
	// remembered is the size of each cache.
	remembered = 256
	// strangersPerSecond and strangersAtOnce limit the reviews of unknown tokens per address. Tokens that were valid
	// before are not limited.
	strangersPerSecond = 5
	strangersAtOnce    = 20
	// addresses is the number of addresses whose rates are remembered.
	addresses = 1024
	// reviewTimeout is the timeout of the reviews for a request.
	reviewTimeout = 10 * time.Second
)

// errUnknown means that a request has no token or an unknown one; errTooMany that there are too many requests with
// unknown tokens to review them.
var (
	errUnknown = errors.New("unauthorized")
	errTooMany = errors.New("too many requests with unknown tokens")
)

// Guard protects handlers.
type Guard struct {
	tokens    authentication.TokenReviewInterface
	access    authorization.SubjectAccessReviewInterface
	known     *cache.LRUExpireCache // of acquaintance, by the hash of the token
	allowed   *cache.LRUExpireCache // by question; only permissions that were granted
	strangers *strangers
	clock     clock.PassiveClock
	log       logr.Logger
}

// acquaintance is the user of a token, and when it was reviewed.
type acquaintance struct {
	user     *authenticationv1.UserInfo
	reviewed time.Time
}

// question is the key of a cached permission. It has the token, which determines groups and extra fields of the user.
type question struct {
	token        [sha256.Size]byte
	method, path string
}

// New returns a Guard that uses the API server of a config, through a client.
func New(config *rest.Config, client *http.Client, clock clock.Clock, log logr.Logger) (*Guard, error) {
	tokens, err := authentication.NewForConfigAndClient(config, client)
	if err != nil {
		return nil, fmt.Errorf("preparing to review tokens: %w", err)
	}
	access, err := authorization.NewForConfigAndClient(config, client)
	if err != nil {
		return nil, fmt.Errorf("preparing to review access: %w", err)
	}
	return &Guard{
		tokens: tokens.TokenReviews(), access: access.SubjectAccessReviews(), log: log,
		known:     cache.NewLRUExpireCacheWithClock(remembered, clock),
		allowed:   cache.NewLRUExpireCacheWithClock(remembered, clock),
		strangers: &strangers{rates: lru.New(addresses), clock: clock},
		clock:     clock,
	}, nil
}

// Protect returns a handler that responds with 401 to unknown tokens, 429 if there are too many of them, 403 to users
// without permission, and 500 if the API server cannot be reached, and otherwise calls handler.
func (g *Guard) Protect(handler http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), reviewTimeout)
		defer cancel()
		allowed, err := g.allows(ctx, r)
		switch {
		case errors.Is(err, errUnknown):
			w.Header().Set("WWW-Authenticate", "Bearer")
			http.Error(w, "Unauthorized", http.StatusUnauthorized)
		case errors.Is(err, errTooMany):
			w.Header().Set("Retry-After", "1")
			http.Error(w, "Too many requests with unknown tokens", http.StatusTooManyRequests)
		case err != nil:
			g.log.Error(err, "Cannot authorize a request", "method", r.Method, "path", r.URL.Path)
			http.Error(w, "Cannot authorize the request: the API server did not review it", http.StatusInternalServerError)
		case !allowed:
			http.Error(w, fmt.Sprintf("Forbidden: no permission to %s this path", strings.ToLower(r.Method)), http.StatusForbidden)
		default:
			handler.ServeHTTP(w, r)
		}
	})
}

func (g *Guard) allows(ctx context.Context, r *http.Request) (bool, error) {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	token = strings.TrimSpace(token)
	if !strings.EqualFold(scheme, "Bearer") || token == "" {
		return false, errUnknown
	}
	q := question{token: sha256.Sum256([]byte(token)), method: strings.ToLower(r.Method), path: r.URL.Path}
	user, err := g.user(ctx, q.token, token, r.RemoteAddr)
	if err != nil {
		return false, err
	}
	return g.permits(ctx, q, user)
}

// user returns the user of a token that was sent from an address.
func (g *Guard) user(ctx context.Context, hash [sha256.Size]byte, token, address string) (*authenticationv1.UserInfo, error) {
	before, acquainted := g.known.Get(hash)
	if acquainted && g.clock.Since(before.(acquaintance).reviewed) < knownFor {
		return before.(acquaintance).user, nil
	}
	if !acquainted && !g.strangers.accept(address) {
		return nil, errTooMany
	}
	review, err := g.tokens.Create(ctx, &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token}},
		metav1.CreateOptions{})
	if err != nil {
		return nil, fmt.Errorf("reviewing a token: %w", err)
	}
	if !review.Status.Authenticated {
		return nil, errUnknown
	}
	g.known.Add(hash, acquaintance{user: &review.Status.User, reviewed: g.clock.Now()}, acquaintedFor)
	return &review.Status.User, nil
}

// permits reports whether a user has a permission.
func (g *Guard) permits(ctx context.Context, q question, user *authenticationv1.UserInfo) (bool, error) {
	if _, found := g.allowed.Get(q); found {
		return true, nil
	}
	extra := map[string]authorizationv1.ExtraValue{}
	for key, value := range user.Extra {
		extra[key] = authorizationv1.ExtraValue(value)
	}
	review, err := g.access.Create(ctx, &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: user.Username, UID: user.UID, Groups: user.Groups, Extra: extra,
		NonResourceAttributes: &authorizationv1.NonResourceAttributes{Verb: q.method, Path: q.path},
	}}, metav1.CreateOptions{})
	if err != nil {
		return false, fmt.Errorf("reviewing the access of %s: %w", user.Username, err)
	}
	allowed := review.Status.Allowed && !review.Status.Denied
	if allowed {
		g.allowed.Add(q, nil, allowedFor)
	}
	return allowed, nil
}
