package scenario

import (
	"context"
	"errors"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"sigs.k8s.io/cluster-api/sdk/pki"
)

const (
	controlPlaneAPI      = "controlplane.cluster.x-k8s.io/v1beta1"
	controlPlaneTemplate = "in-memory-control-plane"
)

// externalEtcd returns scenarios of Clusters whose etcd is not on their machines.
func externalEtcd() []Scenario {
	s := deployed(3, 1)
	return []Scenario{
		{
			Name: "create-external-etcd", Prepare: UseExternalEtcd, ExternalEtcd: true,
			Change: []Change{Create(s)}, Done: []Condition{Ready(s)},
			Limits: Limits{MaxControlPlanes: 3, MaxWorkers: 1, NewControlPlanes: 3, NewWorkers: 1},
		},
		{
			Name: "upgrade-external-etcd", Prepare: UseExternalEtcd, ExternalEtcd: true, Before: &s,
			Change: []Change{Upgrade}, Done: []Condition{Upgraded, Ready(s)},
			Limits: Limits{
				MaxControlPlanes: 4, MaxWorkers: 2, MinControlPlanes: 3, MinWorkers: 1, NewControlPlanes: 3, NewWorkers: 1,
			},
		},
	}
}

// UseExternalEtcd creates the Secrets of external etcd, and changes the class so that its Clusters use it.
func UseExternalEtcd(ctx context.Context, t Target) error {
	ca, pair, err := newCA()
	if err != nil {
		return err
	}
	certificate, err := ca.Issue(pki.Request{CommonName: "apiserver", Validity: time.Hour}, time.Now())
	if err != nil {
		return err
	}
	cluster := types.NamespacedName{Namespace: t.Namespace, Name: ClusterName}
	return errors.Join(
		t.Client.Create(ctx, pki.NewSecret(cluster, pki.EtcdCA, map[string][]byte{pki.CertificateKey: pair.Certificate}, nil)),
		t.Client.Create(ctx, pki.NewSecret(cluster, pki.APIServerEtcdClient, certificate.Data(), nil)),
		changeControlPlane(ctx, t, map[string]any{
			"endpoints": []any{"https://etcd.example.com:2379"}, "caFile": "/etc/kubernetes/pki/etcd/ca.crt",
			"certFile": "/etc/kubernetes/pki/apiserver-etcd-client.crt", "keyFile": "/etc/kubernetes/pki/apiserver-etcd-client.key",
		}))
}

// changeControlPlane makes the class use another template for control planes, with external etcd.
func changeControlPlane(ctx context.Context, t Target, external map[string]any) error {
	template := object(controlPlaneAPI, "KubeadmControlPlaneTemplate", t.Namespace, controlPlaneTemplate)
	if err := t.Client.Get(ctx, client.ObjectKeyFromObject(template), template); err != nil {
		return err
	}
	next := object(controlPlaneAPI, "KubeadmControlPlaneTemplate", t.Namespace, "external-etcd")
	next.Object["spec"] = template.Object["spec"]
	if err := unstructured.SetNestedMap(next.Object, external, "spec", "template", "spec", "kubeadmConfigSpec",
		"clusterConfiguration", "etcd", "external"); err != nil {
		return err
	}
	if err := t.Client.Create(ctx, next); err != nil {
		return err
	}
	return editClass(ctx, t, func(class map[string]any) error {
		return unstructured.SetNestedField(class, next.GetName(), "spec", "controlPlane", "ref", "name")
	})
}

// newCA returns a new CA, also encoded.
func newCA() (*pki.CA, pki.Pair, error) {
	ca, err := pki.NewCA(pki.ECDSA, time.Now())
	if err != nil {
		return nil, pki.Pair{}, err
	}
	pair, err := ca.PEM()
	return ca, pair, err
}
