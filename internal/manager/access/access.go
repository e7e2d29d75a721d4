// Package access lets in those whom the API server knows and permits: it asks who has a bearer token (TokenReview), and
// whether they may send this method to this path (SubjectAccessReview). Answers are remembered for a while, so that a
// scraper costs the API server next to nothing.
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
)

const (
	// knownFor is how long it is remembered whose a token is, or that it is nobody's.
	knownFor = time.Minute
	// allowedFor and deniedFor are how long permissions are remembered.
	allowedFor = 5 * time.Minute
	deniedFor  = 30 * time.Second
	// remembered is how many answers of each kind are kept: whoever makes up tokens may not fill the memory.
	remembered = 256
	// reviewTimeout bounds each question to the API server.
	reviewTimeout = 10 * time.Second
)

// errUnknown says that a request has no token, or one that is nobody's.
var errUnknown = errors.New("unauthorized")

// Guard decides who is let in.
type Guard struct {
	tokens  authentication.TokenReviewInterface
	access  authorization.SubjectAccessReviewInterface
	known   *cache.LRUExpireCache // of *authenticationv1.UserInfo, nil for nobody, by the hash of a token
	allowed *cache.LRUExpireCache // of bool, by question
	log     logr.Logger
}

// question is what is asked about permissions. Groups and extra fields belong to the token, and so does the answer.
type question struct {
	token        [sha256.Size]byte
	method, path string
}

// New is a Guard that asks the API server of this config. The client is for its address.
func New(config *rest.Config, client *http.Client, clock clock.PassiveClock, log logr.Logger) (*Guard, error) {
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
		known:   cache.NewLRUExpireCacheWithClock(remembered, clock),
		allowed: cache.NewLRUExpireCacheWithClock(remembered, clock),
	}, nil
}

// Protect is the handler for those who may use it: 401 for strangers, 403 for those without permission, and 500 when the
// API server does not say, which is nobody's permission.
func (g *Guard) Protect(handler http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), reviewTimeout)
		defer cancel()
		allowed, err := g.allows(ctx, r)
		switch {
		case errors.Is(err, errUnknown):
			w.Header().Set("WWW-Authenticate", "Bearer")
			http.Error(w, "Unauthorized", http.StatusUnauthorized)
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
	user, err := g.user(ctx, q.token, token)
	if err != nil {
		return false, err
	}
	return g.permits(ctx, q, user)
}

// user is who has a token.
func (g *Guard) user(ctx context.Context, hash [sha256.Size]byte, token string) (*authenticationv1.UserInfo, error) {
	if known, found := g.known.Get(hash); found {
		if user, isUser := known.(*authenticationv1.UserInfo); isUser {
			return user, nil
		}
		return nil, errUnknown
	}
	review, err := g.tokens.Create(ctx, &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token}}, metav1.CreateOptions{})
	if err != nil {
		return nil, fmt.Errorf("reviewing a token: %w", err)
	}
	if !review.Status.Authenticated {
		g.known.Add(hash, nil, knownFor)
		return nil, errUnknown
	}
	g.known.Add(hash, &review.Status.User, knownFor)
	return &review.Status.User, nil
}

// permits tells whether a user may do something.
func (g *Guard) permits(ctx context.Context, q question, user *authenticationv1.UserInfo) (bool, error) {
	if answer, found := g.allowed.Get(q); found {
		return answer == true, nil
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
	ttl := deniedFor
	if allowed {
		ttl = allowedFor
	}
	g.allowed.Add(q, allowed, ttl)
	return allowed, nil
}
