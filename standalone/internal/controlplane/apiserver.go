package controlplane

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"time"

	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/apiserver/pkg/features"
	genericapiserver "k8s.io/apiserver/pkg/server"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/rest"
	kubeapiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	"k8s.io/kubernetes/cmd/kube-apiserver/app/options"

	"sigs.k8s.io/cluster-api/standalone/internal/certs"
)

const (
	serviceCIDR = "10.96.0.0/16"
	issuer      = "https://kubernetes.default.svc"

	// Priority and fairness shares these between clients, so that no client starves the others.
	maxInFlight         = 4000
	maxMutatingInFlight = 2000

	// shutdownTimeout bounds how long a shutdown waits for watches, which may never end. Other requests in flight are
	// waited for until they complete or, after a minute, are rejected.
	shutdownTimeout = 5 * time.Second
)

// serverConfig is the input of newAPIServer.
type serverConfig struct {
	listener   net.Listener
	files      certs.Files
	etcdSocket string
	// Paths of an EgressSelectorConfiguration and of an EncryptionConfiguration, or "".
	egressConfig, encryptionConfig string
	audit                          Audit
	handlers                       map[string]http.Handler
}

// apiServer is a kube-apiserver that is ready to run.
type apiServer struct {
	run      func(context.Context) error
	loopback *rest.Config
}

// newAPIServer assembles a kube-apiserver. It takes over the listener.
func newAPIServer(ctx context.Context, c serverConfig) (*apiServer, error) {
	if err := utilfeature.DefaultMutableFeatureGate.SetFromMap(singleServer()); err != nil {
		return nil, fmt.Errorf("set the API server's feature gates: %w", err)
	}
	completed, err := serverOptions(c).Complete(ctx)
	if err != nil {
		return nil, fmt.Errorf("complete the API server's options: %w", err)
	}
	if errs := completed.Validate(); len(errs) != 0 {
		return nil, fmt.Errorf("check the API server's options: %w", utilerrors.NewAggregate(errs))
	}
	config, err := kubeapiserver.NewConfig(completed)
	if err != nil {
		return nil, fmt.Errorf("configure the API server: %w", err)
	}
	for _, generic := range []*genericapiserver.Config{
		config.KubeAPIs.ControlPlane.Generic, &config.ApiExtensions.GenericConfig.Config, &config.Aggregator.GenericConfig.Config,
	} {
		generic.EffectiveVersion = reported{generic.EffectiveVersion}
	}
	ready, err := config.Complete()
	if err != nil {
		return nil, fmt.Errorf("complete the API server's configuration: %w", err)
	}
	chain, err := kubeapiserver.CreateServerChain(ready)
	if err != nil {
		return nil, fmt.Errorf("assemble the API server: %w", err)
	}
	chain.GenericAPIServer.ShutdownTimeout = shutdownTimeout
	for path, handler := range c.handlers {
		chain.GenericAPIServer.Handler.NonGoRestfulMux.Handle(path, handler)
	}
	prepared, err := chain.PrepareRun()
	if err != nil {
		return nil, fmt.Errorf("prepare the API server: %w", err)
	}
	loopback := rest.CopyConfig(config.KubeAPIs.ControlPlane.Generic.LoopbackClientConfig)
	loopback.QPS = -1 // no client-side limit: the server is in the same process
	return &apiServer{run: prepared.Run, loopback: loopback}, nil
}

// serverOptions returns which parts of kube-apiserver are enabled.
func serverOptions(c serverConfig) *options.ServerRunOptions {
	address := c.listener.Addr().(*net.TCPAddr)
	s := options.NewServerRunOptions()
	s.SecureServing.Listener = c.listener
	s.SecureServing.BindAddress, s.SecureServing.BindPort = address.IP, address.Port
	s.SecureServing.ServerCert.CertKey.CertFile = c.files.ServingCert
	s.SecureServing.ServerCert.CertKey.KeyFile = c.files.ServingKey
	s.GenericServerRunOptions.ExternalHost = host(address.IP)
	// No client uses the Service "kubernetes", so its endpoints are not reconciled.
	s.GenericServerRunOptions.AdvertiseAddress = address.IP
	s.EndpointReconcilerType = "none"
	s.ServiceClusterIPRanges = serviceCIDR

	s.Etcd.StorageConfig.Transport.ServerList = []string{"unix://" + c.etcdSocket}
	s.Etcd.EncryptionProviderConfigFilepath = c.encryptionConfig
	s.EgressSelector.ConfigFile = c.egressConfig
	c.audit.apply(s.Audit)

	s.Authentication.ClientCert.ClientCA = c.files.CACert
	s.Authentication.ServiceAccounts.Issuers = []string{issuer}
	s.Authentication.ServiceAccounts.KeyFiles = []string{c.files.ServiceAccountKey}
	s.ServiceAccountSigningKeyFile = c.files.ServiceAccountKey
	s.Authorization.Modes = []string{"RBAC"}

	s.Features.EnableProfiling = true // behind authentication; `kubectl get --raw /debug/pprof/heap`
	s.GenericServerRunOptions.MaxRequestsInFlight = maxInFlight
	s.GenericServerRunOptions.MaxMutatingRequestsInFlight = maxMutatingInFlight
	s.Admission.GenericAdmission.DisablePlugins = podAdmission()
	s.APIEnablement.RuntimeConfig = nodeAPIs()
	s.GenericServerRunOptions.ShutdownWatchTerminationGracePeriod = shutdownTimeout // without it, watches delay the shutdown
	// Manifests that require privileged containers must be accepted as on other clusters.
	s.AllowPrivileged = true
	return s
}

// nodeAPIs disables the groups that are only useful where Pods run on Nodes. Kinds in providers' manifests stay enabled
// (PodDisruptionBudget, NetworkPolicy, HorizontalPodAutoscaler, PriorityClass, Job), so that they can be applied,
// although nothing acts on them. So does resource.k8s.io, which quotas watch.
func nodeAPIs() map[string]string {
	off := map[string]string{}
	for _, version := range []string{"node.k8s.io/v1", "storage.k8s.io/v1"} {
		off[version] = "false"
	}
	return off
}

// singleServer disables the leases with which several API servers of one cluster find each other: two writes every ten
// seconds.
func singleServer() map[string]bool {
	return map[string]bool{
		string(features.APIServerIdentity):                   false,
		string(features.UnknownVersionInteroperabilityProxy): false,
	}
}

// podAdmission lists the admission plugins for Pods and volumes. Pods never run here, and each plugin maintains caches.
func podAdmission() []string {
	return []string{
		"DefaultStorageClass", "DefaultTolerationSeconds", "JobValidation", "LimitRanger", "NodeDeclaredFeatureValidator",
		"PersistentVolumeClaimResize", "PodResizeValidator", "PodSecurity", "PodTopologyLabels", "Priority",
		"RuntimeClass", "ServiceAccount", "StorageObjectInUseProtection", "TaintNodesByCondition", "PodGroupProtection",
		"PodGroupWorkloadExists",
	}
}

// host is the address that clients on this machine use for a server bound to ip.
func host(ip net.IP) string {
	if ip.IsUnspecified() {
		return "127.0.0.1"
	}
	return ip.String()
}
