// Package files has the files of our own in the images: one folder per image, laid out like its file system. Files whose
// names end in .tmpl are templates.
//
// Programs and files of Debian packages do not belong here.
package files

import (
	"embed"
	"io/fs"
)

//go:embed node loadbalancer
var content embed.FS

// Node returns the files of node images.
func Node() fs.FS { return sub("node") }

// LoadBalancer returns the files of the load balancer's image.
func LoadBalancer() fs.FS { return sub("loadbalancer") }

func sub(dir string) fs.FS {
	out, err := fs.Sub(content, dir)
	if err != nil {
		panic(err) // the name is a constant, and valid
	}
	return out
}
