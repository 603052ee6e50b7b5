@echo off
rem Starts whygpu on Windows; elsewhere the file "whygpu" beside it starts itself. With -I, no
rem PYTHON* variable, current folder or user site can change what whygpu itself imports.
rem The lines end as in Windows, because cmd may otherwise miss a label.
if exist "%~dp0python.exe" goto beside
if exist "%~dp0..\python.exe" goto above
python -I "%~dp0whygpu" %*
exit /b %errorlevel%
:beside
"%~dp0python.exe" -I "%~dp0whygpu" %*
exit /b %errorlevel%
:above
"%~dp0..\python.exe" -I "%~dp0whygpu" %*
exit /b %errorlevel%
