// Package access lets in those whom the API server knows and permits: it asks who has a bearer token (TokenReview), and
// whether they may send this method to this path (SubjectAccessReview). That somebody is known or permitted is
// remembered for a while, so that a scraper costs the API server next to nothing. That somebody is not is not: a review
// that failed on the way looks the same as one of a token that is nobody's, and made-up tokens would push out real ones.
// Unknown tokens are limited in rate instead, for each address that sends them: a client whose token was replaced, as those
// of ServiceAccounts are every hour, is not held up by somebody elsewhere who makes up tokens.
//
// The libraries that API servers themselves use for it would be a fifth of every manager's program. What is served
// behind the check does not belong here.
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
	// knownFor is how long it is believed whose a token is. For acquaintedFor it is remembered that it was somebody's.
	knownFor      = time.Minute
	acquaintedFor = time.Hour
	// allowedFor is how long permissions are remembered.
	allowedFor = 5 * time.Minute
	// remembered is how many answers of each kind are kept.
	remembered = 256
	// strangersPerSecond and strangersAtOnce limit the reviews of unknown tokens from one address. Tokens that were known
	// before are not limited.
	strangersPerSecond = 5
	strangersAtOnce    = 20
	// addresses is for how many addresses their rates are kept.
	addresses = 1024
	// reviewTimeout bounds each question to the API server.
	reviewTimeout = 10 * time.Second
)

// errUnknown says that a request has no token, or one that is nobody's; errTooMany that there are too many requests with
// unknown tokens to review them all.
var (
	errUnknown = errors.New("unauthorized")
	errTooMany = errors.New("too many requests with unknown tokens")
)

// Guard decides who is let in.
type Guard struct {
	tokens    authentication.TokenReviewInterface
	access    authorization.SubjectAccessReviewInterface
	known     *cache.LRUExpireCache // of acquaintance, by the hash of a token
	allowed   *cache.LRUExpireCache // by question; what is in it is permitted
	strangers *strangers
	clock     clock.PassiveClock
	log       logr.Logger
}

// acquaintance is whose a token was, and when.
type acquaintance struct {
	user     *authenticationv1.UserInfo
	reviewed time.Time
}

// question is what is asked about permissions. Groups and extra fields belong to the token, and so does the answer.
type question struct {
	token        [sha256.Size]byte
	method, path string
}

// New is a Guard that asks the API server of this config. The client is for its address.
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

// Protect is the handler for those who may use it: 401 for strangers, 429 when there are too many of them, 403 for those
// without permission, and 500 when the API server does not say, which is nobody's permission.
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
			g.log.Error(err, "Cannot tell who may do this", "method", r.Method, "path", r.URL.Path)
			http.Error(w, "The API server did not say who may do this", http.StatusInternalServerError)
		case !allowed:
			http.Error(w, fmt.Sprintf("Forbidden: %s of this path is not permitted to you", strings.ToLower(r.Method)), http.StatusForbidden)
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

// user is who has a token that came from an address.
func (g *Guard) user(ctx context.Context, hash [sha256.Size]byte, token, address string) (*authenticationv1.UserInfo, error) {
	before, acquainted := g.known.Get(hash)
	if acquainted && g.clock.Since(before.(acquaintance).reviewed) < knownFor {
		return before.(acquaintance).user, nil
	}
	if !acquainted && !g.strangers.accept(address) {
		return nil, errTooMany
	}
	review, err := g.tokens.Create(ctx, &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token}}, metav1.CreateOptions{})
	if err != nil {
		return nil, fmt.Errorf("reviewing a token: %w", err)
	}
	if !review.Status.Authenticated {
		return nil, errUnknown
	}
	g.known.Add(hash, acquaintance{user: &review.Status.User, reviewed: g.clock.Now()}, acquaintedFor)
	return &review.Status.User, nil
}

// permits tells whether a user may do something.
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
