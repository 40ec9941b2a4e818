package record

// ProgressRow is the newest report of a run.
type ProgressRow struct {
	ExecutionID int64  `gorm:"column:execution_id;primaryKey;autoIncrement:false"`
	TenantID    int64  `gorm:"column:tenant_id"`
	Fence       int64  `gorm:"column:fence"`
	Seq         int64  `gorm:"column:seq"`
	Permille    int64  `gorm:"column:permille"`
	Message     string `gorm:"column:message"`
	UpdatedAt   int64  `gorm:"column:updated_at;autoUpdateTime:false"`
}

func (ProgressRow) TableName() string { return "execution_progress" }

// StepRow is the stored result of a step.
type StepRow struct {
	ExecutionID int64  `gorm:"column:execution_id;primaryKey;autoIncrement:false"`
	Name        string `gorm:"column:name;primaryKey"`
	TenantID    int64  `gorm:"column:tenant_id"`
	Fence       int64  `gorm:"column:fence"`
	Output      []byte `gorm:"column:output"`
	StoredAt    int64  `gorm:"column:stored_at"`
}

func (StepRow) TableName() string { return "execution_steps" }
