package webhookcert

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"sigs.k8s.io/cluster-api/sdk/failsafe"
)

// longestSleep limits how late a rotation is after the machine was suspended or its clock changed. Waking up without a
// reason costs no request.
const longestSleep = 12 * time.Hour

// issueWait is how long a handshake waits for the first certificate: less than the ten seconds that API servers give to
// the call of a webhook by default.
const issueWait = 8 * time.Second

// Keeper is the source of a manager that issues its certificate itself. The package comment describes how it works and which
// permissions it needs.
type Keeper struct {
	secret   types.NamespacedName
	rotation rotation
	injector injector
	reader   client.Reader
	writer   client.Writer
	clock    clock.PassiveClock
	log      logr.Logger
	// observed is the cache of Start, and is also reader in a running manager.
	observed cache.Cache

	// known is the last bundle in the Secret. It is only used by Reconcile, which does not run concurrently.
	known bundle

	served   atomic.Pointer[tls.Certificate]
	issued   gate // open once served is set
	injected atomic.Bool
}

// SecretName returns the name of the Secret with the certificate of a webhook Service.
func SecretName(service string) string {
	return service + "-cert"
}

// GetCertificate returns the certificate to serve. There may be none yet after the start: then the handshake waits
// for a while, because a failed webhook call fails a client's request.
func (k *Keeper) GetCertificate(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
	ctx, cancel := context.WithTimeout(hello.Context(), issueWait)
	defer cancel()
	return k.certificate(ctx)
}

func (k *Keeper) certificate(ctx context.Context) (*tls.Certificate, error) {
	select {
	case <-k.issued.opened():
		return k.served.Load(), nil
	case <-ctx.Done():
		return nil, errors.New("the webhook certificate has not been issued yet")
	}
}

// gate is closed until release is called.
type gate struct {
	made, open sync.Once
	c          chan struct{}
}

func (g *gate) opened() <-chan struct{} {
	g.made.Do(func() { g.c = make(chan struct{}) })
	return g.c
}

func (g *gate) release() {
	g.opened()
	g.open.Do(func() { close(g.c) })
}

// Ready returns nil once there is a certificate and its CA bundle has been written.
func (k *Keeper) Ready() error {
	if k.served.Load() == nil {
		return fmt.Errorf("the webhook certificate in Secret %s has not been issued yet", k.secret)
	}
	if !k.injected.Load() {
		return errors.New("the CA bundle has not been written to all webhook configurations yet; see the log")
	}
	return nil
}

// Reconcile serves the certificate in the Secret, writes its CA bundle, and then changes the Secret if that is due. The change
// is an event, too.
func (k *Keeper) Reconcile(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
	secret, current, err := k.load(ctx)
	if err != nil {
		return reconcile.Result{}, err
	}
	if current.serving != nil {
		k.served.Store(current.serving)
		k.issued.release()
		if err := k.injector.inject(ctx, current.caBundle()); err != nil {
			return reconcile.Result{}, err
		}
		k.injected.Store(true)
	}
	now := k.clock.Now()
	next, changed, err := k.rotation.next(current, now)
	if err != nil {
		return reconcile.Result{}, err
	}
	if changed {
		return reconcile.Result{}, k.save(ctx, secret, next)
	}
	return reconcile.Result{RequeueAfter: min(k.rotation.due(current, now), longestSleep)}, nil
}

// load reads the Secret, which is nil if it does not exist. A missing or invalid Secret does not cause an interruption:
// its last content is still served and trusted, until the next CA has been propagated.
func (k *Keeper) load(ctx context.Context) (*corev1.Secret, bundle, error) {
	secret := &corev1.Secret{}
	err := k.reader.Get(ctx, k.secret, secret)
	if apierrors.IsNotFound(err) {
		return nil, k.known.withoutSigner(), nil
	}
	if err != nil {
		return nil, bundle{}, fmt.Errorf("reading Secret %s: %w", k.secret, err)
	}
	current, err := parseBundle(secret.Data)
	if err != nil {
		k.log.Error(err, "The webhook certificate is invalid and will be reissued", "Secret", k.secret)
		return secret, k.known.withoutSigner(), nil
	}
	k.known = current
	return secret, current, nil
}

// save writes the bundle. A conflict with another replica is not an error: its write is an event.
func (k *Keeper) save(ctx context.Context, secret *corev1.Secret, b bundle) error {
	data, err := b.data()
	if err != nil {
		return err
	}
	if secret == nil {
		err = k.writer.Create(ctx, &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: k.secret.Namespace, Name: k.secret.Name},
			Type:       corev1.SecretTypeTLS,
			Data:       data,
		})
	} else {
		secret = secret.DeepCopy()
		if secret.Data == nil {
			secret.Data = map[string][]byte{}
		}
		maps.Copy(secret.Data, data)
		err = k.writer.Update(ctx, secret)
	}
	if apierrors.IsAlreadyExists(err) || apierrors.IsConflict(err) {
		k.log.V(2).Info("Another replica has already written the webhook certificate", "Secret", k.secret)
		return nil
	}
	if err != nil {
		return fmt.Errorf("writing the webhook certificate to Secret %s: %w", k.secret, failsafe.Redacted(err))
	}
	k.log.Info("Wrote the webhook certificate", "Secret", k.secret, "CAs", len(b.trusted()),
		"expires", b.serving.Leaf.NotAfter.Format(time.RFC3339))
	return nil
}
