package extension

import (
	"errors"

	"github.com/spf13/pflag"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	runtimecatalog "sigs.k8s.io/cluster-api/api/runtime/catalog"
	runtimehooksv1 "sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1"
	"sigs.k8s.io/cluster-api/providers/internal/extension/flowcontrol"
	"sigs.k8s.io/cluster-api/providers/internal/extension/wire"
	"sigs.k8s.io/cluster-api/sdk/conversion"
	"sigs.k8s.io/cluster-api/sdk/manager"
	"sigs.k8s.io/cluster-api/sdk/watch"
)

// Flags are the flags of components that call extensions.
type Flags struct{ certificate wire.CertificateFiles }

// AddTo adds the flags.
func (f *Flags) AddTo(fs *pflag.FlagSet) {
	fs.StringVar(&f.certificate.Certificate, "runtime-extension-client-cert-file", "",
		"File of the certificate that is shown to runtime extensions, in PEM. It is read again when it changes")
	fs.StringVar(&f.certificate.Key, "runtime-extension-client-key-file", "",
		"File of the private key of --runtime-extension-client-cert-file, in PEM")
}

// Validate returns an error if only one of the files is set.
func (f *Flags) Validate() error {
	if (f.certificate.Certificate == "") != (f.certificate.Key == "") {
		return errors.New("set both --runtime-extension-client-cert-file and --runtime-extension-client-key-file, or none of them")
	}
	return nil
}

// NewCaller returns what sends requests to extensions, with the client certificate of the flags if there is one.
func (f *Flags) NewCaller(mgr ctrl.Manager, env manager.Environment) (*wire.Caller, error) {
	o := wire.Options{UserAgent: env.UserAgent, Dial: env.Dial, Metrics: ctrlmetrics.Registry, Clock: clock.RealClock{}}
	if f.certificate == (wire.CertificateFiles{}) {
		return wire.NewCaller(o), nil
	}
	caller, watcher, err := wire.NewCallerWithCertificate(o, f.certificate)
	if err != nil {
		return nil, err
	}
	return caller, mgr.Add(watcher)
}

// NewFor returns a Client for controllers of a manager, of which one server occupies at most some workers at the same time.
func NewFor(
	mgr ctrl.Manager, env manager.Environment, caller *wire.Caller, conversions *conversion.Registry, workers int,
) (*Client, error) {
	hooks := runtimecatalog.New()
	if err := runtimehooksv1.AddToCatalog(hooks); err != nil {
		return nil, err
	}
	return New(Options{
		Reader: mgr.GetCache(), Catalog: hooks, Conversions: conversions, Caller: caller, Filter: watch.Filter(env.WatchFilter),
		Limiter: flowcontrol.New(workers, clock.RealClock{}),
	})
}
