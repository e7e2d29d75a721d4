package journey

import (
	"testing"

	"k8s.io/client-go/tools/clientcmd"
)

// TestSelfHostedCluster manages the management cluster itself as a workload cluster. The address in its kubeconfig is unreachable, as
// that of some load balancers is from inside, so that managers must use the address by which they reach the management cluster.
func TestSelfHostedCluster(t *testing.T) {
	t.Parallel()
	w := shared.World(t)
	w.installThirdParty()
	f, mgr := w.newThirdParty()
	config, err := clientcmd.Load(f.kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	for _, cluster := range config.Clusters {
		cluster.Server = "https://" + f.host + ":1"
	}
	if f.kubeconfig, err = clientcmd.Write(*config); err != nil {
		t.Fatal(err)
	}
	w.startThirdParty(f, mgr)
	w.applyText(thirdPartyTemplates + "---" + thirdPartyCluster)
	c := &Subject{World: w, Name: "c"}
	c.Eventually("the Cluster becomes ready", provisioned, Workers(2), copied, c.ExplainsNothing)
	w.nodesAreLabeled(c.Snapshot())
	c.Delete()
}
