package credentials

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/v1beta2"
	"sigs.k8s.io/cluster-api/providers/control-plane-kubeadm/internal/snapshot"
	"sigs.k8s.io/cluster-api/sdk/pki"
)

// expiryMetric is when the CAs of clusters expire.
var expiryMetric = prometheus.NewDesc("capi_certificate_authority_expiry_timestamp_seconds",
	"Expiry time of a CA of a workload cluster, in seconds since 1970.",
	[]string{"cluster_name", "cluster_namespace", "certificate_authority"}, nil)

// Expiry is when the CA in a Secret expires.
type Expiry struct {
	Secret string
	At     time.Time
	// purpose and version identify the content that it was read from.
	purpose pki.Purpose
	version string
}

// expiries remembers what was read of the CAs of control planes, by their UID: a CA is parsed again only if its Secret has changed.
// Losing it costs only CPU time.
type expiries struct {
	mu sync.Mutex
	of map[types.UID]*authorities
}

// authorities are the CAs of a cluster.
type authorities struct {
	cluster types.NamespacedName
	list    []Expiry
}

// note remembers when the CA of a Secret expires. What cannot be parsed is left to those who need the certificate: the Secret may be a
// user's.
func (e *expiries) note(cp *snapshot.ControlPlane, purpose pki.Purpose, secret *corev1.Secret) {
	if purpose != pki.ClusterCA && purpose != pki.EtcdCA && purpose != pki.FrontProxyCA {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.of == nil {
		e.of = map[types.UID]*authorities{}
	}
	all := e.of[cp.KCP.UID]
	if all == nil {
		all = &authorities{cluster: cp.Key()}
		e.of[cp.KCP.UID] = all
	}
	i := slices.IndexFunc(all.list, func(k Expiry) bool { return k.purpose == purpose })
	if i >= 0 && all.list[i].version == secret.ResourceVersion {
		return
	}
	next := Expiry{Secret: secret.Name, purpose: purpose, version: secret.ResourceVersion}
	if ca, err := pki.CAFrom(secret); err == nil {
		next.At = ca.Certificate.NotAfter
	}
	if i >= 0 {
		all.list[i] = next
		return
	}
	all.list = append(all.list, next)
	slices.SortFunc(all.list, func(a, b Expiry) int { return cmp.Compare(a.purpose, b.purpose) })
}

// Expiries returns when the CAs of a control plane expire, as far as its certificates were read, sorted by name.
func (p *Provider) Expiries(control types.UID) []Expiry {
	p.expiries.mu.Lock()
	defer p.expiries.mu.Unlock()
	all := p.expiries.of[control]
	if all == nil {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(all.list), func(e Expiry) bool { return e.At.IsZero() })
}

func (e *expiries) forget(control types.UID) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.of, control)
}

// Describe implements prometheus.Collector.
func (*Provider) Describe(out chan<- *prometheus.Desc) { out <- expiryMetric }

// Collect implements prometheus.Collector. Control planes that no longer exist are forgotten, also those that were moved to another
// management cluster: their controllers are not called for that.
func (p *Provider) Collect(out chan<- prometheus.Metric) {
	list := &controlplanev1.KubeadmControlPlaneList{}
	if err := p.Client.List(context.Background(), list, client.UnsafeDisableDeepCopy); err != nil {
		return // The cache has not started, so nothing was read yet.
	}
	exist := make(map[types.UID]bool, len(list.Items))
	for i := range list.Items {
		exist[list.Items[i].UID] = true
	}
	p.expiries.mu.Lock()
	defer p.expiries.mu.Unlock()
	for control, all := range p.expiries.of {
		if !exist[control] {
			delete(p.expiries.of, control)
			continue
		}
		for _, e := range all.list {
			if !e.At.IsZero() {
				out <- prometheus.MustNewConstMetric(expiryMetric, prometheus.GaugeValue, float64(e.At.Unix()),
					all.cluster.Name, all.cluster.Namespace, string(e.purpose))
			}
		}
	}
}
