package controller

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	clusterctlv1 "sigs.k8s.io/cluster-api/api/clusterctl/v1alpha3"
	operatorv1 "sigs.k8s.io/cluster-api/api/operator/v1alpha2"
	"sigs.k8s.io/cluster-api/providers/operator/internal/providerobject"
	"sigs.k8s.io/cluster-api/sdk/testenv"
)

func TestStepsDocumented(t *testing.T) {
	testenv.StepsDocumented(t, (&Controller{kind: providerobject.Kinds()[0]}).declared().Names())
}

// provider returns a provider with an installed contract, "" for none.
func provider(name, contract string, paused bool) providerobject.Provider {
	p := &operatorv1.InfrastructureProvider{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: name, UID: types.UID(name)}}
	p.Spec.Paused, p.Spec.Version = paused, "v2.0.0"
	if contract != "" {
		p.Status.Contract = ptr.To(contract)
	}
	return providerobject.Provider{Type: clusterctlv1.InfrastructureProviderType, Object: p}
}
