package userroles

// grant is a permission of the role edit.
type grant struct {
	resources []string
	verbs     []string
}

// policy is what users may do with the kinds of a component, beyond reading them.
type policy struct {
	// edit has the permissions of the role edit.
	edit []grant
	// readOnly components give no permission to write with the role admin. With others, admin writes all kinds that have a namespace.
	readOnly bool
	// also are resources that are read with the role view, without a definition of the component.
	also map[string][]string
}

const (
	create = "create"
	update = "update"
	patch  = "patch"
	remove = "delete"
	all    = "deletecollection"
)

// policies by folder of the component. The role edit operates clusters that are made from shared classes: it gives no machines but those
// that Clusters demand, and none of an infrastructure template of the user.
func policies() map[string]policy {
	return map[string]policy{
		"core": {
			edit: []grant{
				{[]string{"clusters", "machinehealthchecks", "machinedrainrules"}, []string{create, update, patch, remove, all}},
				// Deleting a Machine replaces it; annotations are the interface to remediation, deletion and drain.
				{[]string{"machines"}, []string{update, patch, remove}},
				{[]string{"machinedeployments", "machinesets", "machinepools"}, []string{update, patch}},
				{[]string{"machinedeployments/scale", "machinesets/scale", "machinepools/scale"}, []string{update, patch}},
			},
			// clusterctl init defines it, for all providers.
			also: map[string][]string{"clusterctl.cluster.x-k8s.io": {"providers"}},
		},
		"bootstrap-kubeadm": {},
		"control-plane-kubeadm": {edit: []grant{
			{[]string{"kubeadmcontrolplanes"}, []string{update, patch}},
			{[]string{"kubeadmcontrolplanes/scale"}, []string{update, patch}},
		}},
		"infrastructure-in-memory": {},
		"ipam-in-cluster":          {},
		"fleet": {edit: []grant{
			// The role reads Secrets anyway, so an archive gives no more. Stores and policies, and deleting backups, are for administrators.
			{[]string{"etcdbackups"}, []string{create}},
		}},
		// With these kinds, users become root on the host of the containers.
		"infrastructure-docker": {readOnly: true},
		// With these kinds, users install any program with any permission.
		"operator": {readOnly: true},
	}
}
