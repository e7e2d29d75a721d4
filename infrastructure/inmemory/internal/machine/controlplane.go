package machine

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"maps"
	"net"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	inmemoryv1 "sigs.k8s.io/cluster-api/api/infrastructure/inmemory/v1alpha1"
	"sigs.k8s.io/cluster-api/infrastructure/inmemory/internal/apiserver"
	"sigs.k8s.io/cluster-api/infrastructure/inmemory/internal/bootstrap"
	"sigs.k8s.io/cluster-api/infrastructure/inmemory/internal/cloud"
	"sigs.k8s.io/cluster-api/infrastructure/inmemory/internal/etcd"
	"sigs.k8s.io/cluster-api/provider/condition"
	"sigs.k8s.io/cluster-api/provider/pki"
	"sigs.k8s.io/cluster-api/provider/step"
)

// etcd starts the machine's etcd member.
func (c *Controller) etcd(ctx context.Context, s *scope) (step.Result, error) {
	if gaveUp(s.obj, inmemoryv1.EtcdProvisionedCondition) {
		return step.Stop(), nil
	}
	remaining, err := c.remaining(s, "etcd", inmemoryv1.EtcdProvisionedCondition, inmemoryv1.NodeProvisionedCondition)
	if err != nil {
		return step.Done(), err
	}
	if remaining > 0 {
		return starting(remaining, "etcd")
	}
	machine := etcd.Machine{Name: s.obj.Name, UID: s.obj.UID}
	if err := c.member(s, machine); err != nil {
		if errors.Is(err, etcd.ErrNoCluster) || errors.Is(err, etcd.ErrNoQuorum) || errors.Is(err, etcd.ErrPeerURLExists) {
			return c.kubeadmFails(s, inmemoryv1.EtcdProvisionedCondition, err)
		}
		return step.Done(), err
	}
	if err := c.etcdPod(s, machine); err != nil {
		return step.Done(), err
	}
	if !s.endpoint.HasEtcd(s.obj.Name) {
		ca, err := c.authority(ctx, s, pki.EtcdCA)
		if err != nil {
			return step.Done(), err
		}
		name := "etcd-" + s.obj.Name
		serving, err := c.serving(ca, name, s, name)
		if err != nil {
			return step.Done(), err
		}
		s.endpoint.StartEtcd(s.obj.Name, serving)
	}
	return step.Done(), nil
}

// member makes the machine a member of the cluster's etcd, as kubeadm does: kubeadm init always creates an etcd cluster, even
// if one exists; kubeadm join joins the existing one.
func (c *Controller) member(s *scope, machine etcd.Machine) error {
	if s.running.Restored || condition.IsTrue(s.obj, inmemoryv1.EtcdProvisionedCondition) {
		return etcd.Restore(s.group, machine)
	}
	switch s.data.Action {
	case bootstrap.Init:
		return etcd.Found(s.group, machine)
	case bootstrap.Join:
		return etcd.Join(s.group, machine)
	}
	// For bootstrap data in an unsupported format, assume what makes sense.
	clusters, err := etcd.Clusters(s.group)
	if err != nil {
		return err
	}
	if len(clusters) == 0 {
		return etcd.Found(s.group, machine)
	}
	return etcd.Join(s.group, machine)
}

func (c *Controller) etcdPod(s *scope, machine etcd.Machine) error {
	annotations, err := etcd.Annotations(s.group, machine)
	if err != nil {
		return err
	}
	pod := newPod(s, "etcd")
	maps.Copy(pod.Annotations, annotations)
	if _, err := cloud.Ensure(s.group, pod); err != nil {
		return fmt.Errorf("starting etcd: %w", err)
	}
	return nil
}

// apiServer starts the machine's API server, scheduler and controller manager.
func (c *Controller) apiServer(ctx context.Context, s *scope) (step.Result, error) {
	remaining, err := c.remaining(s, "apiServer", inmemoryv1.APIServerProvisionedCondition, inmemoryv1.NodeProvisionedCondition)
	if err != nil {
		return step.Done(), err
	}
	if remaining > 0 {
		return starting(remaining, "the API server")
	}
	if err := c.credentials(ctx, s); err != nil {
		return step.Done(), err
	}
	for _, component := range []string{"kube-apiserver", "kube-scheduler", "kube-controller-manager"} {
		if _, err := cloud.Ensure(s.group, newPod(s, component)); err != nil {
			return step.Done(), fmt.Errorf("starting %s: %w", component, err)
		}
	}
	s.endpoint.StartServer(s.obj.Name, ptr.Deref(s.machine.Spec.Version, ""))
	return step.Done(), nil
}

// credentials sets the certificates of the cluster's endpoint, once per process.
func (c *Controller) credentials(ctx context.Context, s *scope) error {
	if s.endpoint.HasCredentials() {
		return nil
	}
	ca, err := c.authority(ctx, s, pki.ClusterCA)
	if err != nil {
		return err
	}
	etcdCA, err := c.authority(ctx, s, pki.EtcdCA)
	if err != nil {
		return err
	}
	serving, err := c.serving(ca, "kube-apiserver", s, "kubernetes", "kubernetes.default", "kubernetes.default.svc")
	if err != nil {
		return err
	}
	credentials := apiserver.Credentials{Serving: serving, Authority: ca.Certificate, ClientCAs: x509.NewCertPool(), EtcdClientCAs: x509.NewCertPool()}
	credentials.ClientCAs.AddCert(ca.Certificate)
	credentials.EtcdClientCAs.AddCert(etcdCA.Certificate)
	s.endpoint.SetCredentials(credentials)
	return nil
}

func (c *Controller) authority(ctx context.Context, s *scope, purpose pki.Purpose) (*pki.CA, error) {
	secret := &corev1.Secret{}
	key := pki.SecretKey(types.NamespacedName{Namespace: s.cluster.Namespace, Name: s.cluster.Name}, purpose)
	// The manager's client reads from the API server what is not in the cache: a Secret that a user created may lack the label.
	if err := c.Client.Get(ctx, key, secret); err != nil {
		return nil, fmt.Errorf("reading Secret %s: %w", key, err)
	}
	return pki.CAFrom(secret)
}

func (c *Controller) serving(ca *pki.CA, name string, s *scope, dns ...string) (tls.Certificate, error) {
	ips := []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback}
	host, _, err := net.SplitHostPort(s.endpoint.Address())
	if ip := net.ParseIP(host); err == nil && ip != nil {
		ips = append(ips, ip)
	}
	pair, err := ca.Issue(pki.Request{
		CommonName: name, DNSNames: append(dns, "localhost"), IPs: ips, Validity: 10 * 365 * 24 * time.Hour,
	}, c.Clock.Now())
	if err != nil {
		return tls.Certificate{}, err
	}
	return tls.X509KeyPair(pair.Certificate, pair.Key)
}
