package record

// ClusterValueRow is what all nodes have to agree on, by name.
type ClusterValueRow struct {
	Name  string `gorm:"column:name;primaryKey"`
	Value string `gorm:"column:value"`
}

func (ClusterValueRow) TableName() string { return "cluster_values" }
