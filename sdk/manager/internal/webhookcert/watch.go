package webhookcert

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/go-logr/logr"
	"golang.org/x/sync/errgroup"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// KeeperOptions configure a Keeper. All but Definitions are required.
type KeeperOptions struct {
	// Config and HTTPClient are for the API server.
	Config     *rest.Config
	HTTPClient *http.Client
	// Service is the namespace and name of the Service of the webhook server. The Secret is in the
	// same namespace.
	Service types.NamespacedName
	// Definitions selects the CustomResourceDefinitions whose versions this component converts; nil if it
	// converts none, which saves the watch.
	Definitions labels.Selector
	Clock       clock.PassiveClock
	Log         logr.Logger
}

// NewKeeper returns a Keeper. It sends no requests before Start.
func NewKeeper(o KeeperOptions) (*Keeper, error) {
	k := &Keeper{
		secret:   types.NamespacedName{Namespace: o.Service.Namespace, Name: SecretName(o.Service.Name)},
		rotation: rotation{dnsNames: DNSNames(o.Service)},
		clock:    o.Clock,
		log:      o.Log,
	}
	scheme, mapper, err := kinds()
	if err != nil {
		return nil, err
	}
	observed, err := newCache(o, k.secret, scheme, mapper)
	if err != nil {
		return nil, fmt.Errorf("preparing to watch the webhook certificate: %w", err)
	}
	writer, err := client.New(o.Config, client.Options{HTTPClient: o.HTTPClient, Scheme: scheme, Mapper: mapper})
	if err != nil {
		return nil, fmt.Errorf("preparing to write the webhook certificate: %w", err)
	}
	k.observed, k.reader, k.writer = observed, observed, writer
	k.injector = injector{reader: observed, writer: writer, service: o.Service, conversions: o.Definitions != nil, log: o.Log}
	return k, nil
}

// DNSNames returns the names of a Service; API servers use the first one.
func DNSNames(service types.NamespacedName) []string {
	name := service.Name + "." + service.Namespace + ".svc"
	return []string{name, name + ".cluster.local"}
}

// kinds returns the kinds that a Keeper uses, with a mapper that saves discovery requests.
func kinds() (*runtime.Scheme, meta.RESTMapper, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		corev1.AddToScheme, admissionregistrationv1.AddToScheme, apiextensionsv1.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			return nil, nil, fmt.Errorf("registering the kinds of webhook certificates: %w", err)
		}
	}
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(corev1.SchemeGroupVersion.WithKind("Secret"), meta.RESTScopeNamespace)
	mapper.Add(admissionregistrationv1.SchemeGroupVersion.WithKind("ValidatingWebhookConfiguration"), meta.RESTScopeRoot)
	mapper.Add(admissionregistrationv1.SchemeGroupVersion.WithKind("MutatingWebhookConfiguration"), meta.RESTScopeRoot)
	mapper.Add(apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"), meta.RESTScopeRoot)
	return scheme, mapper, nil
}

// newCache returns a cache of the Secret, all webhook configurations, and the selected definitions without their schemas.
// It is not the manager's cache, which may only be filled once conversion webhooks are trusted.
func newCache(o KeeperOptions, secret types.NamespacedName, scheme *runtime.Scheme, mapper meta.RESTMapper) (cache.Cache, error) {
	return cache.New(o.Config, cache.Options{
		HTTPClient:       o.HTTPClient,
		Scheme:           scheme,
		Mapper:           mapper,
		DefaultTransform: cache.TransformStripManagedFields(),
		ByObject: map[client.Object]cache.ByObject{
			&corev1.Secret{}: {
				Namespaces: map[string]cache.Config{secret.Namespace: {}},
				Field:      fields.OneTermEqualSelector("metadata.name", secret.Name),
			},
			&apiextensionsv1.CustomResourceDefinition{}: {
				Label:     o.Definitions,
				Transform: withoutSchema,
			},
		},
	})
}

func withoutSchema(o any) (any, error) {
	if definition, ok := o.(*apiextensionsv1.CustomResourceDefinition); ok {
		definition.ManagedFields = nil
		definition.Spec.Versions = nil
		definition.Status = apiextensionsv1.CustomResourceDefinitionStatus{}
	}
	return o, nil
}

// Start maintains the certificate until ctx is done. It only returns an error if watching is impossible; all other errors
// are logged and retried.
func (k *Keeper) Start(ctx context.Context) error {
	c, err := controller.NewUnmanaged("webhook-certificate", controller.Options{
		Reconciler:         k,
		Logger:             k.log,
		SkipNameValidation: ptr.To(true), // Several managers may run in one process.
	})
	if err != nil {
		return fmt.Errorf("preparing to maintain the webhook certificate: %w", err)
	}
	for _, s := range k.sources() {
		if err := c.Watch(s); err != nil {
			return fmt.Errorf("watching for the webhook certificate: %w", err)
		}
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return k.observed.Start(ctx) })
	group.Go(func() error { return c.Start(ctx) })
	if err := group.Wait(); err != nil && !errors.Is(err, context.Canceled) {
		return fmt.Errorf("maintaining the webhook certificate in Secret %s: %w", k.secret, err)
	}
	return nil
}

// sources returns what triggers a reconcile: the start, the Secret, and all objects with webhooks of the Service.
func (k *Keeper) sources() []source.Source {
	once := source.Func(func(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		queue.Add(k.request())
		return nil
	})
	always := func(client.Object) bool { return true }
	callsUs := func(o client.Object) bool { return len(k.injector.callers(o)) > 0 }
	sources := []source.Source{
		once,
		k.watch(&corev1.Secret{}, always),
		k.watch(&admissionregistrationv1.ValidatingWebhookConfiguration{}, callsUs),
		k.watch(&admissionregistrationv1.MutatingWebhookConfiguration{}, callsUs),
	}
	if k.injector.conversions {
		sources = append(sources, k.watch(&apiextensionsv1.CustomResourceDefinition{}, callsUs))
	}
	return sources
}

// watch maps events of relevant objects to the only request.
func (k *Keeper) watch(kind client.Object, relevant func(client.Object) bool) source.Source {
	enqueue := handler.EnqueueRequestsFromMapFunc(func(context.Context, client.Object) []reconcile.Request {
		return []reconcile.Request{k.request()}
	})
	return source.Kind(k.observed, kind, enqueue, predicate.NewPredicateFuncs(relevant))
}

func (k *Keeper) request() reconcile.Request {
	return reconcile.Request{NamespacedName: k.secret}
}
