package bootstrap

import (
	"fmt"

	"sigs.k8s.io/cluster-api/providers/internal/userdata"
)

// Plan is what a machine does to bootstrap: Before, Files and Commands, in this order, until one fails.
type Plan userdata.Data

// File is a file to write.
type File = userdata.File

// Command is a command to run.
type Command = userdata.Command

// Read interprets the value of a bootstrap data Secret, and adapts kubeadm to containers. Errors do not quote the data.
func Read(value []byte, format string) (*Plan, error) {
	data, err := userdata.Read(value, format)
	if err != nil {
		return nil, err
	}
	for _, f := range data.Files {
		if f.External {
			return nil,
				fmt.Errorf("file %.200q has its content elsewhere, but containers download nothing: make it part of the bootstrap data", f.Path)
		}
	}
	p := (*Plan)(data)
	p.adapt()
	return p, nil
}
