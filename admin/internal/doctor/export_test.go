package doctor

var (
	JudgeSpace = judgeSpace
	JudgeFiles = judgeFiles
)
