package webhookcert

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr/testr"
	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	testingclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// server is an API server that counts writes.
type server struct {
	client.WithWatch
	writes int
	fail   error
	// forbidden is the name of an object that must not be patched.
	forbidden string
}

func newServer(t *testing.T, objects ...client.Object) *server {
	t.Helper()
	scheme, mapper, err := kinds()
	if err != nil {
		t.Fatal(err)
	}
	s := &server{}
	s.WithWatch = fake.NewClientBuilder().WithScheme(scheme).WithRESTMapper(mapper).WithObjects(objects...).
		WithInterceptorFuncs(interceptor.Funcs{
			Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
				s.writes++
				return c.Create(ctx, o, opts...)
			},
			Update: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.UpdateOption) error {
				s.writes++
				return c.Update(ctx, o, opts...)
			},
			Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
				if s.fail != nil {
					return s.fail
				}
				if o.GetName() == s.forbidden {
					return apierrors.NewForbidden(schema.GroupResource{Resource: "validatingwebhookconfigurations"}, o.GetName(), errors.New("no permission"))
				}
				s.writes++
				return c.Patch(ctx, o, p, opts...)
			},
		}).Build()
	return s
}

// replica is a Keeper over an API server, without watches: tests call Reconcile.
func replica(t *testing.T, s *server, clock *testingclock.FakePassiveClock) *Keeper {
	return &Keeper{
		secret:   types.NamespacedName{Namespace: testService.Namespace, Name: SecretName(testService.Name)},
		rotation: testRotation,
		injector: injector{reader: s, writer: s, service: testService, conversions: true, log: testr.New(t)},
		reader:   s,
		writer:   s,
		clock:    clock,
		log:      testr.New(t),
	}
}

func reconciled(t *testing.T, k *Keeper) reconcile.Result {
	t.Helper()
	result, err := k.Reconcile(t.Context(), k.request())
	if err != nil {
		t.Fatal(err)
	}
	return result
}

// reconcileAll reconciles until nothing changes, as triggered by events of its own writes.
func reconcileAll(t *testing.T, s *server, keepers ...*Keeper) {
	t.Helper()
	for range 10 {
		before := s.writes
		for _, k := range keepers {
			reconciled(t, k)
		}
		if s.writes == before {
			return
		}
	}
	t.Fatal("the keepers go on writing")
}

func served(t *testing.T, k *Keeper) *tls.Certificate {
	t.Helper()
	c, err := k.certificate(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func configuration() *admissionregistrationv1.ValidatingWebhookConfiguration {
	return &admissionregistrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "capi-validating-webhook-configuration"},
		Webhooks: []admissionregistrationv1.ValidatingWebhook{{
			Name: "validation.cluster.cluster.x-k8s.io",
			ClientConfig: admissionregistrationv1.WebhookClientConfig{
				Service: &admissionregistrationv1.ServiceReference{Namespace: testService.Namespace, Name: testService.Name},
			},
		}},
	}
}

func caBundle(t *testing.T, s *server) []byte {
	t.Helper()
	c := configuration()
	if err := s.Get(t.Context(), client.ObjectKeyFromObject(c), c); err != nil {
		t.Fatal(err)
	}
	return c.Webhooks[0].ClientConfig.CABundle
}

func TestKeeperIssuesAndRotates(t *testing.T) {
	clock := testingclock.NewFakePassiveClock(start)
	s := newServer(t, configuration())
	k := replica(t, s, clock)

	hurried, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := k.certificate(hurried); err == nil || k.Ready() == nil {
		t.Fatal("before the first certificate the server must not look ready")
	}
	reconcileAll(t, s, k)
	first := served(t, k)
	if err := k.Ready(); err != nil {
		t.Errorf("issued and injected, yet: %v", err)
	}
	if !accepted(t, caBundle(t, s), first, start) {
		t.Error("the CA bundle does not match the served certificate")
	}
	if s.writes != 2 {
		t.Errorf("a start is one Secret and one configuration, got %d writes", s.writes)
	}

	now := start
	for now.Before(start.AddDate(4, 0, 0)) {
		was := served(t, k)
		reconcileAll(t, s, k)
		if now := clock.Now(); !accepted(t, caBundle(t, s), was, now) || !accepted(t, caBundle(t, s), served(t, k), now) {
			t.Fatalf("at %s a request of the API server would have failed", now)
		}
		if sleep := reconciled(t, k).RequeueAfter; sleep <= 0 || sleep > longestSleep {
			t.Fatalf("at %s the keeper wants to be called after %s", now, sleep)
		}
		now = now.Add(k.rotation.due(k.known, now))
		clock.SetTime(now)
	}
	if accepted(t, caBundle(t, s), first, start) {
		t.Error("after four years the first CA must be removed")
	}
	// Five renewed certificates (a Secret each) and one new CA (three Secrets, of which two change the bundle).
	if s.writes > 2+5+3+2 {
		t.Errorf("%d writes in four years: an idle manager must not write", s.writes)
	}
}

func TestReplicasRacingForTheFirstCertificate(t *testing.T) {
	clock := testingclock.NewFakePassiveClock(start)
	s := newServer(t, configuration())
	winner, loser := replica(t, s, clock), replica(t, s, clock)
	// The loser's cache is a moment behind: it has not seen the Secret that the winner creates.
	loser.reader = newServer(t)

	reconciled(t, winner)
	if result := reconciled(t, loser); result != (reconcile.Result{}) {
		t.Errorf("a conflict is not an error and needs no retry, because the other write is an event: %+v", result)
	}
	loser.reader = s
	reconcileAll(t, s, winner, loser)
	if diff := cmp.Diff(served(t, winner).Certificate, served(t, loser).Certificate); diff != "" {
		t.Errorf("replicas serve different certificates (-winner +loser):\n%s", diff)
	}
	if !accepted(t, caBundle(t, s), served(t, loser), start) {
		t.Error("the API server does not trust the winner's certificate")
	}
}

func TestReplicasRacingForARotation(t *testing.T) {
	clock := testingclock.NewFakePassiveClock(start)
	s := newServer(t, configuration())
	winner, loser := replica(t, s, clock), replica(t, s, clock)
	reconcileAll(t, s, winner, loser)
	secret := &corev1.Secret{}
	if err := s.Get(t.Context(), winner.secret, secret); err != nil {
		t.Fatal(err)
	}
	loser.reader = stale{Reader: s, secret: secret}

	clock.SetTime(start.Add(servingValidity - servingRenewal))
	reconciled(t, winner)
	reconciled(t, loser)
	loser.reader = s
	reconcileAll(t, s, winner, loser)
	if diff := cmp.Diff(served(t, winner).Certificate, served(t, loser).Certificate); diff != "" {
		t.Errorf("replicas serve different certificates (-winner +loser):\n%s", diff)
	}
}

// stale is a cache that has not seen the latest Secret yet.
type stale struct {
	client.Reader
	secret *corev1.Secret
}

func (s stale) Get(_ context.Context, _ client.ObjectKey, o client.Object, _ ...client.GetOption) error {
	s.secret.DeepCopyInto(o.(*corev1.Secret))
	return nil
}

func TestDeletingTheSecretForcesARotation(t *testing.T) {
	clock := testingclock.NewFakePassiveClock(start)
	s := newServer(t, configuration())
	one, other := replica(t, s, clock), replica(t, s, clock)
	reconcileAll(t, s, one, other)
	first := served(t, one)

	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: one.secret.Namespace, Name: one.secret.Name}}
	if err := s.Delete(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	reconcileAll(t, s, one, other)
	if served(t, one) == nil || !accepted(t, caBundle(t, s), first, start) {
		t.Fatal("deleting the Secret must not interrupt anything")
	}
	for _, after := range []time.Duration{propagationTime, 2 * propagationTime} {
		clock.SetTime(start.Add(after))
		reconcileAll(t, s, one, other)
		for _, k := range []*Keeper{one, other} {
			if !accepted(t, caBundle(t, s), served(t, k), clock.Now()) {
				t.Fatalf("%s after the deletion a request of the API server would have failed", after)
			}
		}
	}
	if accepted(t, caBundle(t, s), first, clock.Now()) {
		t.Error("deleting the Secret must remove its CA")
	}
}

func TestKeeperTakesOverAForeignSecret(t *testing.T) {
	clock := testingclock.NewFakePassiveClock(start)
	other := foreign(t, start, 90*24*time.Hour)
	own, _ := mustNext(t, testRotation, bundle{}, start)
	data, err := bundle{signer: own.signer, serving: other.serving}.data()
	if err != nil {
		t.Fatal(err)
	}
	data[caCertKey] = other.caBundle()
	delete(data, caKeyKey)
	data["keep"] = []byte("me")
	s := newServer(t, configuration(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: testService.Namespace, Name: SecretName(testService.Name)},
		Type:       corev1.SecretTypeTLS,
		Data:       data,
	})
	k := replica(t, s, clock)
	reconcileAll(t, s, k)
	if diff := cmp.Diff(other.serving.Certificate, served(t, k).Certificate); diff != "" {
		t.Errorf("the valid certificate must still be served (-want +got):\n%s", diff)
	}
	clock.SetTime(start.Add(propagationTime))
	reconcileAll(t, s, k)
	if cmp.Equal(other.serving.Certificate, served(t, k).Certificate) || !accepted(t, caBundle(t, s), served(t, k), clock.Now()) {
		t.Error("after propagation the keeper's own CA must sign")
	}
	secret := &corev1.Secret{}
	if err := s.Get(t.Context(), k.secret, secret); err != nil || string(secret.Data["keep"]) != "me" {
		t.Errorf("other data of the Secret must be kept: %v", err)
	}
}

func TestInvalidSecretIsReplaced(t *testing.T) {
	s := newServer(t, configuration(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: testService.Namespace, Name: SecretName(testService.Name)},
		Data:       map[string][]byte{caCertKey: []byte("nonsense")},
	})
	k := replica(t, s, testingclock.NewFakePassiveClock(start))
	reconcileAll(t, s, k)
	if !accepted(t, caBundle(t, s), served(t, k), start) {
		t.Error("an invalid Secret must be replaced")
	}
}

// An API server's error for a rejected Secret may quote the Secret.
func TestRejectedSecretIsNotShown(t *testing.T) {
	forbidden := func(obj client.Object) error {
		data := obj.(*corev1.Secret).Data
		return apierrors.NewForbidden(corev1.Resource("secrets"), obj.GetName(), fmt.Errorf("not wanted: %s", data))
	}
	for reason, there := range map[string][]client.Object{
		"a new one":    {configuration()},
		"another time": {configuration(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: testService.Namespace, Name: SecretName(testService.Name)}}},
	} {
		k := replica(t, newServer(t, there...), testingclock.NewFakePassiveClock(start))
		k.writer = interceptor.NewClient(k.writer.(client.WithWatch), interceptor.Funcs{
			Create: func(_ context.Context, _ client.WithWatch, obj client.Object, _ ...client.CreateOption) error {
				return forbidden(obj)
			},
			Update: func(_ context.Context, _ client.WithWatch, obj client.Object, _ ...client.UpdateOption) error {
				return forbidden(obj)
			},
		})
		_, err := k.Reconcile(t.Context(), k.request())
		if !apierrors.IsForbidden(err) || !strings.HasSuffix(err.Error(), ": the API server answered 403 Forbidden") {
			t.Errorf("%s: error %v; want what was attempted, and the code of the response", reason, err)
		}
	}
}

func TestNoRotationWhileInjectionFails(t *testing.T) {
	clock := testingclock.NewFakePassiveClock(start)
	s := newServer(t, configuration())
	k := replica(t, s, clock)
	s.fail = errors.New("admissionregistration.k8s.io is forbidden")
	reconciled(t, k) // creates the Secret
	for range 2 {
		if _, err := k.Reconcile(t.Context(), k.request()); !errors.Is(err, s.fail) {
			t.Fatalf("the failure must be returned, to be logged and retried: %v", err)
		}
	}
	if served(t, k) == nil || k.Ready() == nil {
		t.Error("the certificate is served, but not trusted yet: not ready")
	}
	writes := s.writes
	clock.SetTime(start.Add(servingValidity - servingRenewal))
	if _, err := k.Reconcile(t.Context(), k.request()); err == nil || s.writes != writes {
		t.Errorf("no rotation before the last CA bundle was written: %v", err)
	}
	s.fail = nil
	reconcileAll(t, s, k)
	if err := k.Ready(); err != nil {
		t.Error(err)
	}
}

// Another component's configuration with our Service that cannot be written does not stop a rotation; our own one does.
func TestForeignConfigurations(t *testing.T) {
	for _, test := range []struct {
		reason, forbidden string
		stops             bool
	}{
		{"another component's", "foreign", false},
		{"our own", configuration().Name, true},
	} {
		foreign := configuration()
		foreign.Name = "foreign"
		s := newServer(t, configuration(), foreign)
		s.forbidden = test.forbidden
		k := replica(t, s, testingclock.NewFakePassiveClock(start))
		var failed error
		for range 3 {
			_, err := k.Reconcile(t.Context(), k.request())
			failed = errors.Join(failed, err)
		}
		if (failed != nil) != test.stops || (k.Ready() != nil) != test.stops {
			t.Errorf("%s: reconciling: %v; ready: %v", test.reason, failed, k.Ready())
		}
		if trusted := len(caBundle(t, s)) > 0; trusted == test.stops {
			t.Errorf("%s: our configuration trusts us: %v", test.reason, trusted)
		}
	}
}
