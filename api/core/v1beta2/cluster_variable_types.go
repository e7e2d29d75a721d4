package v1beta2

import apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

// ClusterVariable is the value of one variable of the ClusterClass.
type ClusterVariable struct {
	// name is the name of the variable.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	Name string `json:"name,omitempty"`

	// value is any JSON value that the variable's schema accepts. It is always written, because null is a value.
	// +required
	Value apiextensionsv1.JSON `json:"value"`
}

// ControlPlaneVariables are the variables of the control plane.
// +kubebuilder:validation:MinProperties=1
type ControlPlaneVariables struct {
	// overrides take precedence over the cluster's values of the same variables.
	// +optional
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=1000
	// +listType=map
	// +listMapKey=name
	Overrides []ClusterVariable `json:"overrides,omitempty"`
}

// MachineDeploymentVariables are the variables of one MachineDeployment.
// +kubebuilder:validation:MinProperties=1
type MachineDeploymentVariables struct {
	// overrides take precedence over the cluster's values of the same variables.
	// +optional
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=1000
	// +listType=map
	// +listMapKey=name
	Overrides []ClusterVariable `json:"overrides,omitempty"`
}

// MachinePoolVariables are the variables of one MachinePool.
// +kubebuilder:validation:MinProperties=1
type MachinePoolVariables struct {
	// overrides take precedence over the cluster's values of the same variables.
	// +optional
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=1000
	// +listType=map
	// +listMapKey=name
	Overrides []ClusterVariable `json:"overrides,omitempty"`
}
