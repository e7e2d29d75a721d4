package casts

import "strings"

// cast is a sequence of commands.
type cast struct {
	name, title, desc string
	// prefix is the start of IDs, which are many.
	prefix string
	rows   int
	// commands are typed. Lines after the first are continued ones.
	commands []string
}

// all returns the casts in their order. Each continues with what the ones before have created.
func all() []cast {
	return []cast{
		{
			name: "cast-create", prefix: "c",
			title: "Install providers and create a cluster",
			desc: "A terminal. clusterctl init installs four providers and waits until they run. clusterctl create cluster creates the " +
				"objects of a cluster, shows them as a tree while they become ready, and ends with how to get the kubeconfig. kubectl " +
				"lists its three Nodes, all Ready.",
			rows: 32,
			commands: []string{
				"clusterctl init --infrastructure in-memory --wait-providers",
				"clusterctl create cluster demo --infrastructure in-memory --worker-machine-count 2",
				"clusterctl get kubeconfig demo > demo.kubeconfig",
				"kubectl --kubeconfig demo.kubeconfig get nodes",
			},
		},
		{
			name: "cast-plan", prefix: "p",
			title: "Plan an upgrade",
			desc: "A terminal. clusterctl plan shows that a Cluster with version v1.32.0 instead of v1.31.2 changes its " +
				"KubeadmControlPlane, which Machine is replaced, why, and that the workers follow later.",
			rows:     20,
			commands: []string{"kubectl get cluster demo -o yaml | sed s/v1.31.2/v1.32.0/ > cluster.yaml", "clusterctl plan -f cluster.yaml"},
		},
		{
			name: "cast-upgrade", prefix: "u",
			title: "Upgrade Kubernetes in a cluster",
			desc: "A terminal. The version of a Cluster is changed to v1.32.0. clusterctl wait cluster shows the tree of objects while " +
				"the Machine of the control plane and then those of the workers are replaced. kubectl lists the new Machines, all " +
				"Running with v1.32.0.",
			rows: 19,
			commands: []string{
				`kubectl patch cluster demo --type merge -p '{"spec":{"topology":{"version":"v1.32.0"}}}'`,
				"clusterctl wait cluster demo",
				"kubectl get machines -o custom-columns=NAME:.metadata.name,PHASE:.status.phase,VERSION:.spec.version",
			},
		},
		{
			name: "cast-explain", prefix: "e",
			title: "Explain what a cluster waits for",
			desc: "A terminal. A provider is scaled to no replicas, and a worker is added, which does not become ready. clusterctl " +
				"explain says that the provider does not run, and prints the command that starts it. After this command, the cluster " +
				"becomes ready.",
			rows: 28,
			commands: []string{
				"kubectl -n capim-system scale deployment capim-controller-manager --replicas 0",
				strings.Join([]string{
					`kubectl patch cluster demo --type json -p '[{"op": "replace",`,
					`  "path": "/spec/topology/workers/machineDeployments/0/replicas", "value": 3}]'`,
				}, "\n"),
				"clusterctl explain demo",
				"kubectl scale deployment capim-controller-manager -n capim-system --replicas 1",
				"clusterctl wait cluster demo",
			},
		},
	}
}
